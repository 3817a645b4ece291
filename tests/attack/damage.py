"""Damages every file of a real home in every way, and shows what is said and what brings it back: the
commands that meet it, a command that the message names, or the backup.

`FILES` names what may stand in a home; a file that is none of them fails: no file without a way out. Each
case is a copy of the home and of its backup in which one file of the home is damaged: then commands run and
the way out is taken. A file that is to come from the backup is left alone. Whatever was damaged, the backup
restores the tables as they were, and a rebuild of the restored home comes to the same."""

import contextlib
import datetime as dt
import fnmatch
import io
import logging
import os
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from assets.checkpoint import Checkpoints
from home import exits
from home.folder import prepare_home
from marketing_api.exchange import Exchange, Outcome
from marketing_api.operations import lists
from marketing_sync import cli
from tests.dialects.server import Options, serve
from tests.pipelines.running import Ran
from tests.pipelines.sandboxes import KEY, Sandbox
from tests.pipelines.tables import Tables, differing, source
from warehouse.archive.archive import Archive
from warehouse.connection import open_database
from warehouse.masking import personal_key
from warehouse.sql import fetch_rows
from write_back.outbox.outbox import open_outbox

Words = tuple[str, ...]
SYNC = ("sync", "--only", "lists")
TAGS = "select email, 'vip' as tag from source.contacts order by 1 limit 3"
PUSH = ("push", "tags", "--sql", TAGS, "--apply")
STATUS = ("status",)
REBUILD = ("rebuild",)
#: What brings a home back whose file only the backup has: into an empty home; pushes wait for the last one.
RESTORE, RELEASE = ("restore",), ("restore", "--release")
#: Messages that send people to the backup.
RESTORES = (
    "restore the last backup with `marketing-sync restore`",
    "restore it into an empty MARKETING_HOME with `marketing-sync restore`",
    "restore it from a backup",
    FOREIGN := "restore that backup into an empty MARKETING_HOME",  # of a home that lost its id
)
#: What a backup says where the run has begun a file again that was lost.
BEGUN_AGAIN = "has a new log of loads), so the backup was not replaced: restore it"
#: A night without models and a published copy, which take a minute.
READ = ("sync", "--reads-only")


@dataclass(frozen=True)
class File:
    """Files of a home by pattern. `cures`: what a person types, when told to. `loses`: what may be missing
    then. `used_by`: commands that meet the damage first, and have to work again in the end."""

    pattern: str
    cures: tuple[Words, ...] = (REBUILD,)
    loses: str = ""
    used_by: tuple[Words, ...] = (SYNC,)


#: The first pattern counts.
FILES = (
    File("warehouse.duckdb", used_by=(STATUS, SYNC, PUSH)),
    File("warehouse.duckdb.wal", used_by=(STATUS, SYNC)),
    File("archive/ledger.sqlite"),
    File("archive/ledger.sqlite-*", loses="the loads and requests since the last closing, of a killed run"),
    File("archive/ledger.lock"),
    File(
        "archive/requests/*.parquet",
        (REBUILD, ("rebuild", "--accept-loss"), ("sync", "--reads-only")),
        "rows of answers in damaged groups",
    ),
    File("archive/bodies/*.zst"),
    File("outbox.sqlite", used_by=(("push", "status"), PUSH)),
    File(
        "outbox.sqlite-*",
        loses="the changes since the last closing, of a push that was killed",
        used_by=(PUSH,),
    ),
    File("outbox.revision", used_by=(PUSH,)),
    File("outbox.copy.sqlite", used_by=(PUSH,)),
    File("sender-*.lock", used_by=(PUSH,)),
    File("dagster/dagster.yaml"),
    File("dagster/history/runs.db*", loses="the list of runs in the UI"),
    File("dagster/history/runs/*.db*", loses="the events of runs in the UI"),
    File("dagster/schedules/*.db*", loses="which schedules are on"),
    File("published/*.duckdb", (("publish",),), used_by=(STATUS, ("report",))),
    File("published/.turn", (("publish",),), used_by=(("publish",),)),
    File("report/index.html", (("report",),), used_by=(("report",),)),
    File("personal.key", loses="hashes of other copies agree with the old key only", used_by=(STATUS,)),
    File("pushes/*/*", loses="the rows of the push's input", used_by=(("push", "status", "1"),)),
    File("version", used_by=(STATUS, SYNC)),
    File("identity.json", (("doctor", "--accept-business", "main", "--yes"),), used_by=(STATUS, SYNC)),
    File("status.json", (SYNC,)),
    File(".in-use"),
    File(".backup"),
    File("logs/*", used_by=()),
    File("tmp/*", used_by=()),
)


def _bit(content: bytes, dice: random.Random) -> bytes:
    at = dice.randrange(len(content))
    return content[:at] + bytes([content[at] ^ 1 << dice.randrange(8)]) + content[at + 1 :]


def _hole(content: bytes, start: int, dice: random.Random) -> bytes:
    size = max(1, min(len(content) // 8, 4096))
    return content[:start] + dice.randbytes(len(content[start : start + size])) + content[start + size :]


def remove(path: Path) -> None:
    if path.is_dir():
        path.rmdir()
    else:
        path.unlink(missing_ok=True)


def _folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


#: By name: what becomes of the content.
_CONTENTS: dict[str, Callable[[bytes, random.Random], bytes]] = {
    "head": lambda content, dice: _hole(content, 0, dice),
    "middle": lambda content, dice: _hole(content, len(content) // 2, dice),
    "cut": lambda content, dice: content[: len(content) * 2 // 3],
    "tail": lambda content, dice: content[:-1],
    "bit": _bit,
    "empty": lambda content, dice: b"",
    "garbage": lambda content, dice: dice.randbytes(max(len(content) // 2, 100)),
    "text": lambda content, dice: b'["a list", 1, {"started_at": 7}]\n',
}
_WHOLES: dict[str, Callable[[Path], None]] = {"folder": _folder, "gone": Path.unlink}
WAYS = (*_CONTENTS, *_WHOLES)


def harm(path: Path, way: str, dice: random.Random) -> None:
    if way in _WHOLES:
        _WHOLES[way](path)
    elif content := path.read_bytes():
        path.write_bytes(_CONTENTS[way](content, dice))


@dataclass
class Bench:
    """A home to be copied, its service, and what its tables hold."""

    folder: Path
    service: Sandbox
    night: Words
    home: Path = field(init=False)
    before: Tables = field(init=False)

    @property
    def backup(self) -> Path:
        return self.folder / "backup"

    def command(self, home: Path, *words: str, backup: Path | None = None) -> Ran:
        out, err = io.StringIO(), io.StringIO()
        settings = {
            "MARKETING_HOME": str(home),
            "MARKETING_BACKUP_DIR": str(backup or self.backup),
            "MARKETING_API_URL": self.service.url,
            "MARKETING_API_KEY": KEY,
            "DAGSTER_HOME": "",
        }
        with (
            pytest.MonkeyPatch.context() as patch,
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(err),
        ):
            patch.chdir(self.folder)
            # or the terminal's would write to the first command's
            patch.setattr(logging.getLogger(), "handlers", [])
            for name in [name for name in os.environ if name.startswith("MARKETING_")]:
                patch.delenv(name)
            for name, value in settings.items():
                patch.setenv(name, value)
            try:
                code = cli.main(words)
            except SystemExit as end:
                code = int(end.code or 0)
        return Ran(code, out.getvalue(), err.getvalue())

    def build(self) -> None:
        """A night, a push, the backup behind them, and what a process leaves that is killed in the middle of
        more."""
        built = prepare_home(self.folder / "built")
        for words in (self.night, PUSH):
            ran = self.command(built, *words)
            assert ran.code == exits.DONE, ran.text[-2000:]
        personal_key(built)
        self.before = source(built)
        self.home = self.folder / "killed"
        body = self.folder / "large.json"
        body.write_bytes(b'{"response": {"data": {}}}' + b" " * 1000)
        with contextlib.ExitStack() as stack:
            archive = stack.enter_context(Archive(built / "archive"))
            outbox = stack.enter_context(open_outbox(built))
            connection = stack.enter_context(open_database(built / "warehouse.duckdb"))
            now = dt.datetime.now(dt.UTC)
            for number, content in enumerate((body, b'{"response": {"data": {"audiences": []}}}')):
                call = lists.GETAUDIENCES.bind()
                archive.record_exchange(
                    Exchange(number + 1, "nobody", call, now, 0, 1, 200, Outcome.OK, None, content)
                )
            Checkpoints(archive).begin_assets(["goals"])
            outbox.prune_rows(7)
            fetch_rows(connection, "create table if not exists sync.passing as select 1 as a")
            shutil.copytree(built, self.home)
        shutil.rmtree(built)


@contextlib.contextmanager
def bench(*night: str) -> Iterator[Bench]:
    """A home of such a night."""
    now = int(time.time()) // 60 * 60
    level = logging.getLogger().level
    with tempfile.TemporaryDirectory() as folder, serve(Options(contacts=12, rate_limit=0, now=now)) as url:
        made = Bench(Path(folder), Sandbox(url), night)
        made.build()
        yield made
    logging.getLogger().setLevel(level)


def file_of(name: str) -> File:
    """AssertionError for a file that nobody has thought of."""
    found = next((file for file in FILES if fnmatch.fnmatch(name, file.pattern)), None)
    assert found is not None, (
        f"{name} stands in a home and in no line of FILES: say what becomes of it when it is damaged"
    )
    return found


def cases(home: Path) -> list[tuple[str, str]]:
    """(file below the home, way), one file for each pattern and folder level."""
    names = {}
    for path in sorted(path for path in home.rglob("*") if path.is_file()):
        name = path.relative_to(home).as_posix()
        file = file_of(name)
        if file.used_by:
            names[file.pattern, path.suffix] = name
    return [(name, way) for name in names.values() for way in WAYS]


@dataclass(frozen=True)
class Told:
    """What became of one case: the first sentence about it, and the commands that brought it back."""

    file: str
    way: str
    said: str
    brought_back_by: str
    lost: tuple[str, ...]


def try_one(made: Bench, name: str, way: str, seed: int) -> Told:
    home, backup, restored = (made.folder / part for part in ("case", "case-backup", "case-restored"))
    for folder, original in ((home, made.home), (backup, made.backup), (restored, None)):
        shutil.rmtree(folder, ignore_errors=True)
        if original:
            shutil.copytree(original, folder)
    harm(home / name, way, random.Random(f"{seed} {name} {way}"))
    harmed = _content(home / name)
    written = made.service.control("written")["contacts"]
    file = file_of(name)

    def run(place: Path, words: Words) -> Ran:
        return _sane(made.command(place, *words, backup=backup), words, name, way)

    said = [run(home, words) for words in file.used_by]
    is_begun_again = any(f"{home / name}" in ran.text and BEGUN_AGAIN in ran.text for ran in said)
    named = [ran.text for ran in said if f"{home / name}" in ran.text or FOREIGN in ran.text]
    is_restored = is_begun_again or any(message in text for text in named for message in RESTORES)
    if is_restored:
        said.append(run(home, ("backup",)))
        assert said[-1].code != exits.DONE, f"{name}, {way}: a damaged home took the backup's place"
        # SQLite and DuckDB may have carried over what a killed process left in the log beside it
        is_alone = not any(Path(f"{made.home / name}{end}").exists() for end in ("-wal", ".wal"))
        is_left = is_begun_again or (_content(home / name) == harmed if is_alone else (home / name).exists())
        assert is_left, f"{name}, {way}: the damaged file was not left alone"
        back = "`restore`"
    else:
        back = _cure(home, name, file, said, run)
    texts = [f"exit code {ran.code}: {ran.text[-700:]}" for ran in said]
    brought_back = [run(restored, words) for words in (RESTORE, REBUILD)]
    after = [f"exit code {ran.code}: {ran.text[-700:]}" for ran in brought_back]
    assert all(ran.code == exits.DONE for ran in brought_back), f"{name}, {way}: the backup: {after}, {texts}"
    lacking = sorted(differing(made.before, source(restored)))
    assert not lacking, f"{name}, {way}: the backup lost of {lacking}: {texts}"
    if is_restored:
        said += [run(restored, words) for words in (SYNC, RELEASE, *file.used_by)]
        texts = [f"exit code {ran.code}: {ran.text[-700:]}" for ran in said]
        home = restored
    assert all(ran.code == exits.DONE for ran in said[-len(file.used_by) :]), (
        f"{name}, {way}: no way out: {texts}"
    )
    assert made.service.control("written")["contacts"] == written, f"{name}, {way}: something was sent twice"
    lost = tuple(sorted(differing(made.before, source(home))))
    assert not lost or file.loses.startswith("rows"), f"{name}, {way}: lost of {lost}: {texts}"
    return Told(name, way, _first(said, made.folder / "case"), back, lost)


def _content(path: Path) -> bytes | None:
    return path.read_bytes() if path.is_file() else None


def _cure(home: Path, name: str, file: File, said: list[Ran], run: Callable[[Path, Words], Ran]) -> str:
    """Take the way out that does without the backup; returns the first command that worked."""
    if any(f"{home / name}" in ran.text and "move it away" in ran.text for ran in said):
        remove(home / name)
    back = "nothing" if all(ran.code == 0 for ran in said) else ""
    for words in (*file.cures, *file.used_by):
        said.append(run(home, words))
        if said[-1].code != exits.DONE:
            back = ""  # such as a rebuild that would lose something, and asks first
        back = back or f"`{' '.join(words)}`" * (said[-1].code == exits.DONE)
    return back


def _sane(ran: Ran, words: tuple[str, ...], name: str, way: str) -> Ran:
    where = f"{name}, {way}, `{' '.join(words)}`: {ran.text[-1500:]}"
    assert "Traceback" not in ran.text, where
    assert "unexpected" not in ran.text, where
    assert ran.code in (exits.DONE, exits.INCOMPLETE, exits.WRONG_USE), where
    signs = ("marketing-sync ", "move ", "remove", "correct", "back")
    assert ran.code == exits.DONE or any(sign in ran.text for sign in signs), where
    return ran


def _first(said: list[Ran], home: Path) -> str:
    words = ("damaged", "gone", "cannot be", "not usable", "missing", "in the way", "anew")
    lines = [line for ran in said for line in ran.err.splitlines() if any(word in line for word in words)]
    return lines[0].replace(f"{home}/", "").replace("|", "/")[:230] if lines else "–"


def attack(minutes: float, seed: int, only: str = "") -> str:
    """As many cases as fit, in an order of the seed; a table of what was said. `only`: FILE|WAY."""
    until = time.monotonic() + 60 * minutes
    with bench(*READ) as made:
        chosen = [case for case in cases(made.home) if only in ("", "|".join(case))]
        random.Random(seed).shuffle(chosen)
        told, failed = [], []
        for name, way in chosen:
            if time.monotonic() > until:
                break
            try:
                told.append(try_one(made, name, way, seed))
                print(told[-1], file=sys.stderr, flush=True)
            except AssertionError as problem:
                failed.append(
                    f"{problem}\n  replay: python -m tests.attack damage --seed {seed} --only '{name}|{way}'"
                )
                print(failed[-1], file=sys.stderr, flush=True)
    table = summary(told, len(chosen))
    assert not failed, "\n".join([table, "", *failed])
    return table


def summary(told: list[Told], possible: int) -> str:
    lines = [
        f"{len(told)} of {possible} cases; without a way out: 0",
        "",
        "| file | ways | what is said | what brings it back | gone |",
    ]
    lines.append("|---|---|---|---|---|")
    groups: dict[tuple[str, str, str, tuple[str, ...]], dict[str, None]] = {}
    for each in sorted(told, key=lambda each: (each.file, WAYS.index(each.way))):
        pattern = file_of(each.file).pattern
        groups.setdefault((pattern, each.said.partition("(")[0][:90], each.brought_back_by, each.lost), {})[
            each.way
        ] = None
    for (pattern, said, back, lost), ways in groups.items():
        lines.append(
            f"| {pattern} | {', '.join(ways)} | {said} | {back} | "
            f"{', '.join(lost) or file_of(pattern).loses or '–'} |"
        )
    return "\n".join(lines)
