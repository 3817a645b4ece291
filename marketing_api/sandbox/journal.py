"""The optional journal of writes: with it a sandbox remembers over restarts what was written and how far its clock was advanced.

One JSON line per write, append-only; the first line of an account holds its origin, which then wins over the options.
Secret parameters are written as `***`. Not here: carrying a write out (`app`).
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from marketing_api.operation import Call
from marketing_api.sandbox.account import Origin

Line = dict[str, Any]


class Journal:
    """Lines of one file, created for the owner only; a torn last line (from a kill) is cut off on opening."""

    def __init__(self, path: Path) -> None:
        self._path = path
        path.touch(mode=0o600)
        self._repair()
        self._file = path.open("a", encoding="utf-8")
        self.is_replaying = False

    def _repair(self) -> None:
        content = self._path.read_bytes()
        whole = content[: content.rfind(b"\n") + 1]
        if len(whole) < len(content):
            self._path.write_bytes(whole)

    def lines(self) -> Iterator[Line]:
        with self._path.open(encoding="utf-8") as file:
            for text in file:
                yield json.loads(text)

    def origin(self, account: str) -> Origin | None:
        """What the account was started from when it was first journalled."""
        for line in self.lines():
            if line["account"] == account and "origin" in line:
                return Origin(**line["origin"])
        return None

    def begin(self, account: str, origin: Origin) -> None:
        self._append({"account": account, "origin": asdict(origin)})

    def write(self, account: str, question: Call, fields: dict[str, str], now: int) -> None:
        self._append({"account": account, "at": now, "operation": question.operation.name, "params": question.shown, "fields": fields})

    def advance(self, account: str, days: float) -> None:
        self._append({"account": account, "advance": days})

    def _append(self, line: Line) -> None:
        if not self.is_replaying:
            self._file.write(json.dumps(line, ensure_ascii=False, separators=(",", ":")) + "\n")
            self._file.flush()

    def close(self) -> None:
        self._file.close()
