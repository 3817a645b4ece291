"""Run `push` as a person does, in a process of its own, stop it at chosen moments, and look for what must not
be there."""

from __future__ import annotations

import re
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests import warm
from tests.waiting import HANGS_S

from .account import Account
from .runs import environment, leaks
from .server import Service
from .writes import WRITES


@dataclass
class Pushed:
    code: int | None  # None: it had to be ended
    out: str
    err: str
    seconds: float
    requests: int  # that the service saw of it

    def __str__(self) -> str:
        return (
            f"exit code {self.code} after {self.seconds:.1f} s and {self.requests} "
            f"requests\n{self.out[-3000:]}\n{self.err[-2500:]}"
        )


def begin(service: Service, home: Path, *arguments: str, level: str = "INFO") -> warm.Command:
    """Any command, not waited for, from an empty folder, logging at the level that must not show a person."""
    elsewhere = home.parent / "elsewhere"
    elsewhere.mkdir(exist_ok=True)
    return warm.Command(
        "marketing_sync.cli", arguments, elsewhere, environment(service, home) | {"MARKETING_LOG": level}
    )


def push(
    service: Service, home: Path, *arguments: str, typed: str = "", patience: float = 2 * HANGS_S
) -> Pushed:
    """`marketing-sync push …` to its end."""
    began, asked = time.monotonic(), len(service.log.entries)
    process, code = begin(service, home, "push", *arguments), 0
    try:
        out, err = process.communicate(typed, timeout=patience)
        code = process.returncode
    except subprocess.TimeoutExpired:
        process.kill()
        (out, err), code = process.communicate(), -1
    return Pushed(
        None if code == -1 else code, out, err, time.monotonic() - began, len(service.log.entries) - asked
    )


def writes(service: Service) -> int:
    """Writes that reached the service, whatever became of them."""
    return sum(entry.operation in WRITES for entry in service.log.entries)


def push_and_stop(
    service: Service, home: Path, after: int, *arguments: str, how: signal.Signals = signal.SIGKILL
) -> Pushed:
    """The same, ended by a signal once it has sent `after` writes (or to its end, when it sends fewer)."""
    began, asked, sent = time.monotonic(), len(service.log.entries), writes(service)
    process = begin(service, home, "push", *arguments)
    while process.poll() is None and writes(service) < sent + after:
        time.sleep(0.002)
    process.send_signal(how)
    out, err = process.communicate(timeout=HANGS_S)
    return Pushed(process.returncode, out, err, time.monotonic() - began, len(service.log.entries) - asked)


@contextmanager
def copied(home: Path, place: Path) -> Iterator[Path]:
    """A synced home for one test alone."""
    shutil.copytree(home, place, symlinks=True)
    try:
        yield place
    finally:
        shutil.rmtree(place, ignore_errors=True)


def spills(service: Service, made: Account, home: Path, *runs: Pushed) -> Iterator[str]:
    """Where the key shows at all, and where an address shows in what was logged."""
    for run in runs:
        if service.account.key in run.out + run.err:
            yield f"the key shows in: {_around(run.out + run.err, service.account.key)}"
        yield from (
            f"standard error names {email}: {_around(run.err, email)}" for email in _addresses(made, run.err)
        )
    yield from (f"the key stands in {place}" for place in leaks(home, service.account.key))
    for path in (path for path in home.rglob("*.log*") if path.is_file()):
        yield from (
            f"{path.relative_to(home)} names {email}"
            for email in _addresses(made, path.read_text(errors="replace"))
        )


def _addresses(made: Account, text: str) -> list[str]:
    known = {member.email for member in made.members if "@" in member.email}
    return sorted(
        {
            email
            for email in re.findall(r"[\w.+'#%&=-]+@[\w.-]+", text)
            if email in known or email.endswith("example.com")
        }
    )[:3]


def _around(text: str, word: str) -> str:
    at = text.find(word)
    return text[max(0, at - 120) : at + 120]
