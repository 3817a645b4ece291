"""What was written to an account, in a file, so that it can be repeated at the next start."""

import json
from pathlib import Path
from typing import Any


class Journal:
    """Lines of one file, created for the owner only; a torn last line (from a kill) is cut off on
    opening."""

    def __init__(self, path: Path) -> None:
        self._path = path
        path.touch(mode=0o600)
        content = path.read_bytes()
        whole = content[: content.rfind(b"\n") + 1]
        if len(whole) < len(content):
            path.write_bytes(whole)
        #: The lines that were there; the first one is the account's `origin`.
        self.lines = [json.loads(line) for line in whole.splitlines()]

    def append(self, **members: Any) -> None:
        """Either `origin`, or a write with the time `at` which it took place, or the days by which
        the clock was to `advance`."""
        with self._path.open("a", encoding="utf-8") as file:
            print(json.dumps(members, ensure_ascii=False), file=file)
