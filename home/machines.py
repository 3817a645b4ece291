"""Which machine uses a home: a note in it, since locks do not reach from machine to machine.

Not here: what takes turns on one machine (`home.in_use`). DuckDB is not imported here: the thread that keeps
the note outlives its module, and what that refers to would be reported as leaked when the program ends."""

import logging
import os
import platform
import signal
import tempfile
import threading
import time
from contextlib import suppress
from pathlib import Path

from home.exits import HomeError

log = logging.getLogger(__name__)

#: Another machine's note that is older was left by one that is gone.
_NOTED_EVERY_S, _ABANDONED_S = 10.0, 35.0
_claimed: set[Path] = set()


def claim(home: Path) -> None:
    """Note in the home which machine uses it, for as long as this process lives; wait where another one did
    until just now.

    Raises HomeError where another machine does. Times are those of the home's own storage, so that no two
    clocks are compared."""
    if home in _claimed:
        return
    note, mine = home / ".machine", f"{_boot_id()} {platform.node()}\n"
    seen = 0
    while (theirs := _read_note(note)) not in ("", mine) and _age(note) < _ABANDONED_S:
        name, before, seen = theirs.partition(" ")[2].strip(), seen, note.stat().st_mtime_ns
        if before not in (0, seen):
            raise HomeError(
                f"another machine ({name}) uses the home {home}: end what runs there, or set MARKETING_HOME "
                "to another folder"
            )
        if not before:
            log.warning(
                "another machine (%s) used the home a moment ago: waiting to see whether it still does", name
            )
        time.sleep(1)
    if theirs != mine:
        unfinished = note.with_name(f"{note.name}.{os.getpid()}")
        unfinished.write_text(mine, encoding="utf-8")
        unfinished.replace(note)  # half of it would pass for another machine's
    note.touch()
    if not _claimed:
        threading.Thread(target=_keep_noted, args=(mine,), name="machine note", daemon=True).start()
    _claimed.add(home)


def _keep_noted(mine: str) -> None:
    """Both may have begun at once, or this machine may have slept: the one whose note is gone ends what it
    does, as Ctrl-C would."""
    while True:
        time.sleep(_NOTED_EVERY_S)
        for note in [home / ".machine" for home in _claimed]:
            with suppress(OSError):
                if (theirs := _read_note(note)) == mine:
                    note.touch()
                elif theirs:  # an empty note is nobody's
                    log.error("another machine has begun to use the home %s: this program ends", note.parent)
                    os.kill(os.getpid(), signal.SIGINT)
                    return


def _read_note(note: Path) -> str:
    try:
        return note.read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return ""


def _age(note: Path) -> float:
    """Seconds since it was touched, by the clock that stamps files there."""
    with tempfile.NamedTemporaryFile(dir=note.parent, prefix=".now-") as now:
        return Path(now.name).stat().st_mtime - note.stat().st_mtime


def _boot_id() -> str:
    """The same in all containers of a machine, another after it was started again; empty where the system
    does not tell."""
    path = Path("/proc/sys/kernel/random/boot_id")
    return path.read_text(encoding="ascii").strip() if path.exists() else ""
