"""Makes the small home that a release leaves as a fixture: `make fixture`. Each later version has to open it.

    python -m tests.pipelines.homes [--program FOLDER]      # of another version, checked out there

A night, a push of five tags, one of five activities. The name is the account's time, in UTC.
"""

from __future__ import annotations

import argparse
import datetime as dt
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

from tests.pipelines.running import environment
from tests.pipelines.sandboxes import Sandbox, spawned

FOLDER = Path(__file__).parent
CONTACTS = 40
_SOME = "from source.contacts where status_code = 1 order by contact_id limit 5"
COMMANDS = (
    ("sync",),
    ("push", "tags", "--sql", f"select email, 'vip' as tag {_SOME}", "--apply"),
    (
        "push",
        "activities",
        "--sql",
        f"select email, 'Bought 2 pounds' as description, '2026-11-20 10:00' as datetime {_SOME}",
        "--apply",
    ),
)
#: What no version needs of another: too much for a fixture.
_LEFT_OUT = ("logs", "tmp", "report", "published", "dbt", "dagster/history", "dagster/schedules", ".machine")


def make(program: Path, name: str) -> Path:
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder) / "home"
        home.mkdir()
        account = (
            "--contacts",
            str(CONTACTS),
            "--rate-limit",
            "0",
            "--now",
            f"{name}:00",
            "--state",
            str(home / "sandbox.jsonl"),
        )
        with spawned(*account) as url:
            settings = environment(
                home, Sandbox(url), PYTHONPATH=str(program), MARKETING_PERSONAL_DATA="hash"
            )
            for words in COMMANDS:
                subprocess.run(
                    [sys.executable, "-m", "marketing_sync", *words], cwd=folder, env=settings, check=True
                )
        return pack(home, FOLDER / f"{name}.tar.xz")


def pack(home: Path, path: Path) -> Path:
    def kept(member: tarfile.TarInfo) -> tarfile.TarInfo | None:
        return None if member.name.removeprefix("./") in _LEFT_OUT else member

    with tarfile.open(path, "w:xz", preset=9) as archive:
        archive.add(home, ".", filter=kept)
    return path


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m tests.pipelines.homes")
    parser.add_argument("--program", type=Path, default=Path.cwd())
    made = make(parser.parse_args().program, f"{dt.datetime.now(dt.UTC):%Y-%m-%dT%H}")
    print(f"{made}: {made.stat().st_size / 1000:,.0f} kB")
