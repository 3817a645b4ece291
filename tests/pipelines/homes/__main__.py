"""Makes the small home that a release leaves as a fixture: `make fixture`. Each later version has to open it.

    python -m tests.pipelines.homes [--program FOLDER]      # of another version, checked out there

A night, a push of five tags, one of five activities, and one of five tags that the service is too troubled to
take. The name is the version and the account's time, in UTC.
"""

import argparse
import datetime as dt
import re
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

from tests.pipelines.running import environment
from tests.pipelines.sandboxes import Sandbox, move_account, spawned

FOLDER = Path(__file__).parent
CONTACTS = 40
_SOME = "from source.contacts where status_code = 1 group by email order by min(contact_id) limit 5"
NIGHT = ("sync",)
TAGS = ("push", "tags", "--sql", f"select email, 'vip' as tag {_SOME}", "--apply")
ACTIVITIES = (
    "push",
    "activities",
    "--sql",
    f"select email, 'Bought 2 pounds' as description, '2026-11-20 10:00' as datetime {_SOME}",
    "--apply",
)
OPEN = ("push", "tags", "--sql", f"select email, 'gold' as tag {_SOME}", "--apply")
#: What no version needs of another: too much for a fixture.
_LEFT_OUT = ("logs", "tmp", "report", "published", "dagster/history", "dagster/schedules")


def make(program: Path, version: str, now: str) -> Path:
    """The file, in the place of an earlier one of this version."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder) / "home"
        home.mkdir()

        def run(*commands: tuple[str, ...], faults: tuple[str, ...] = ()) -> list[int]:
            with spawned(*account_of(home, now), *faults) as url:
                move_account(home, url)
                settings = environment(
                    home, Sandbox(url), PYTHONPATH=str(program), MARKETING_PERSONAL_DATA="hash"
                )
                words = [[sys.executable, "-m", "marketing_sync", *command] for command in commands]
                return [
                    subprocess.run(each, cwd=folder, env=settings, check=False).returncode for each in words
                ]

        assert run(NIGHT, TAGS, ACTIVITIES) == [0, 0, 0]
        assert run(OPEN, faults=("--fault-500-before", "1@emailmarketing/addtag")) == [1]
        for earlier in FOLDER.glob(f"{version}-*.tar.xz"):
            earlier.unlink()
        return pack(home, FOLDER / f"{version}-{now}.tar.xz")


def account_of(home: Path, now: str) -> tuple[str, ...]:
    """Options of a sandbox that has the home's account."""
    state = ("--now", f"{now}:00", "--state", str(home / "sandbox.jsonl"))
    return ("--contacts", str(CONTACTS), "--rate-limit", "0", *state)


def pack(home: Path, path: Path) -> Path:
    def kept(member: tarfile.TarInfo) -> tarfile.TarInfo | None:
        return None if member.name.removeprefix("./") in _LEFT_OUT else member

    with tarfile.open(path, "w:xz", preset=9) as archive:
        archive.add(home, ".", filter=kept)
    return path


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m tests.pipelines.homes")
    parser.add_argument("--program", type=Path, default=Path.cwd())
    program = parser.parse_args().program
    version = re.findall(r'__version__ = "(.+)"', (program / "marketing_api/__init__.py").read_text())[0]
    made = make(program, version, f"{dt.datetime.now(dt.UTC):%Y-%m-%dT%H}")
    print(f"{made}: {made.stat().st_size / 1000:,.0f} kB")
