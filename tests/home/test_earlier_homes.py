"""Homes that released versions left (`tests/pipelines/homes`) open in this one, with all that is in them; and
a rehearsal of the next version, forward, back, and forward again."""

import datetime as dt
import json
import re
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

from home.versions import VERSIONS
from marketing_api.sandbox.app import App
from marketing_sync import __version__
from tests.dialects.server import Options, serve
from tests.fixtures import Command
from tests.pipelines.homes.__main__ import CONTACTS, FOLDER, TAGS
from tests.pipelines.running import Ran, environment
from tests.pipelines.sandboxes import Dated, Sandbox, move_account
from tests.pipelines.tables import query
from warehouse.sql import quote_name

ROOT = Path(__file__).parents[2]
PACKAGES = tuple(
    path.name
    for path in ROOT.iterdir()
    if (path / "__init__.py").exists() and path.name not in ("docs", "tests")
)
#: VERSION-TIME, the time being the account's, in UTC.
HOMES = sorted(path.name.removesuffix(".tar.xz") for path in FOLDER.glob("*.tar.xz"))
NEWEST = max(HOMES, key=lambda name: [int(part) for part in name.partition("-")[0].split(".")])


@pytest.fixture(params=[pytest.param(each, marks=[pytest.mark.attack] * (each != NEWEST)) for each in HOMES])
def name(request: pytest.FixtureRequest) -> str:
    """Before every commit the newest, every night all of them."""
    return str(request.param)


@pytest.fixture
def earlier(name: str, home: Path) -> Path:
    with tarfile.open(FOLDER / f"{name}.tar.xz") as archive:
        archive.extractall(home, filter="data")
    return home


@pytest.fixture
def sandbox(name: str, earlier: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Sandbox]:
    """The home's account a day later, with the writes that it had received; that day for who asks, too."""
    monkeypatch.setattr(App, "respond", Dated.dated)
    now = dt.datetime.fromisoformat(f"{name.partition('-')[2]}:00+00:00") + dt.timedelta(days=1)
    state = earlier / "sandbox.jsonl"
    with serve(Options(contacts=CONTACTS, rate_limit=0, now=int(now.timestamp()), state=state)) as url:
        move_account(earlier, url)
        yield Sandbox(url)


Contents = dict[str, tuple[list[str], list[tuple[object, ...]]]]


def contents(home: Path, like: Contents | None = None) -> Contents:
    """Every row of `source`, by table with its columns: those that it has, or had in `like`."""
    with duckdb.connect(str(home / "warehouse.duckdb"), read_only=True) as connection:
        connection.execute("set timezone = 'UTC'")
        columns = connection.sql(
            "select table_name, list(column_name order by column_index) from duckdb_columns() "
            "where schema_name = 'source' group by all"
        ).fetchall()
        shown = {
            table: like[table][0] if like else names for table, names in columns if not like or table in like
        }
        return {
            table: (
                names,
                connection.sql(
                    f"select {', '.join(map(quote_name, names))} from source.{table} order by all"
                ).fetchall(),
            )
            for table, names in shown.items()
        }


def pushes(ran: Ran) -> dict[int, dict[str, int]]:
    """The rows of each push by their state, as `push status --json` says."""
    assert ran.code == 0, ran.text
    return {each["push"]: each["rows"] for each in json.loads(ran.out)["pushes"]}


def test_a_fixture_is_small_and_knows_nothing_of_where_it_was_made(earlier: Path, name: str) -> None:
    assert (FOLDER / f"{name}.tar.xz").stat().st_size < 1_000_000
    place = re.compile(rb"/(tmp|root|home|Users|var/folders)/\w")
    assert [path for path in earlier.rglob("*") if path.is_file() and place.search(path.read_bytes())] == []


def test_a_patch_leaves_the_numbers_of_a_home_alone(earlier: Path, name: str) -> None:
    """docs/versions.md: who raises one raises the minor version, too."""
    if name.split(".")[:2] == __version__.split(".")[:2]:
        assert json.loads((earlier / "version").read_text()) == VERSIONS


@pytest.mark.slow
def test_it_opens_with_all_that_is_in_it(command: Command, earlier: Path, sandbox: Sandbox) -> None:
    before = contents(earlier)
    assert sum(len(rows) for _, rows in before.values()) > 500
    status, published = command("status", sandbox=sandbox), command("publish", sandbox=sandbox)
    assert (status.code, published.code) == (0, 0), status.text + published.text
    found = command("query", "select count(*) as contacts from source.contacts", "--csv", sandbox=sandbox)
    assert found.out.split() == ["contacts", str(len(before["contacts"][1]))]
    assert command("rebuild", sandbox=sandbox).code == 0
    assert contents(earlier, like=before) == before
    assert sandbox.count == 0


@pytest.mark.slow
def test_it_syncs_and_resumes_what_was_pushed(command: Command, earlier: Path, sandbox: Sandbox) -> None:
    ran = command("sync", "--reads-only", sandbox=sandbox)
    assert ran.code == 0, ran.text
    assert "days read: 2015-01-01" not in ran.out, "only a first sync reads the whole history"
    known = sandbox.count
    assert command("push", "retry", sandbox=sandbox).code == 0
    sent = [each["operation"] for each in sandbox.asked(known)]
    assert sent.count("emailmarketing/addtag") == 5
    resumed = sandbox.count
    assert command(*TAGS, sandbox=sandbox).code == 0
    assert sandbox.count == resumed, "it knows what earlier versions sent"


# ---- the rehearsal

_CHANGES = {
    "marketing_api/__init__.py": [(f'"{__version__}"', '"9.0.0"')],
    "warehouse/schema.py": [
        (r"^SCHEMA_VERSION = (\d+)", f"SCHEMA_VERSION = {VERSIONS['warehouse'] + 1}"),
        (
            r"^MIGRATIONS: dict\[int, Sequence\[str\]\] = {",
            "MIGRATIONS: dict[int, Sequence[str]] = {SCHEMA_VERSION: ('alter table sync.plans "
            "rename column expected_count to yield_count',), ",
        ),
    ],
    "warehouse/sync_tables.toml": [
        ("expected_count", "yield_count"),
        (
            r"\Z",
            '\n[notes]\ndoc = "Notes."\nis_kept = true\n[notes.columns]\nnote = ["VARCHAR", "A note."]\n',
        ),
    ],
    "warehouse/queries/plan.sql": [("expected_count", "yield_count")],
}


@pytest.fixture
def program(tmp_path: Path) -> Path:
    """This program as its next version may be: a table more, a column renamed."""
    folder = tmp_path / "next"
    for package in PACKAGES:
        shutil.copytree(ROOT / package, folder / package, ignore=shutil.ignore_patterns("__pycache__"))
    for file, changes in _CHANGES.items():
        text = (folder / file).read_text(encoding="utf-8")
        for pattern, replacement in changes:
            text, count = re.subn(pattern, replacement, text, flags=re.MULTILINE)
            assert count, f"{file} has no {pattern}"
        (folder / file).write_text(text, encoding="utf-8")
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("name", [NEWEST])
def test_the_next_version_and_back_and_on_again(
    command: Command, earlier: Path, sandbox: Sandbox, program: Path, tmp_path: Path
) -> None:
    def upgraded(*words: str) -> Ran:
        ran = subprocess.run(
            [sys.executable, "-m", "marketing_sync", *words],
            cwd=tmp_path,
            env=environment(earlier, sandbox, PYTHONPATH=str(program)),
            capture_output=True,
            text=True,
            check=False,
        )
        return Ran(ran.returncode, ran.stdout, ran.stderr)

    backup = {"MARKETING_BACKUP_DIR": str(tmp_path / "backup")}
    assert command("backup", sandbox=sandbox, **backup).code == 0
    before, told = contents(earlier), pushes(command("push", "status", "--json", sandbox=sandbox))
    expected = query(earlier, "select reason, expected_count from sync.plans order by all")

    # forward: nothing is lost, and all that is new is there
    assert pushes(upgraded("push", "status", "--json")) == told
    assert contents(earlier, like=before) == before
    renamed = "select reason, yield_count from sync.plans order by all"
    assert query(earlier, renamed) == expected != []
    assert query(earlier, "select count(*) from sync.notes") == [(0,)]
    silver = ("push", "tags", "--sql", TAGS[3].replace("'vip'", "'silver'"), "--apply")
    for words in (("sync", "--reads-only"), ("push", "retry"), silver):
        ran = upgraded(*words)
        assert ran.code == 0, ran.text
    told = pushes(upgraded("push", "status", "--json"))
    before, asked = contents(earlier), sandbox.count

    # back: one sentence, nothing changed and nothing sent
    for words in (("status",), ("sync",), ("push", "retry"), TAGS, ("rebuild",)):
        ran = command(*words, sandbox=sandbox)
        assert (ran.code, "by a newer version of marketing-sync" in ran.err) == (2, True), ran.text
    assert sandbox.count == asked
    # and back by the backup, as docs/versions.md says
    restored = {"MARKETING_HOME": str(tmp_path / "restored")} | backup
    assert command("restore", sandbox=sandbox, **restored).code == 0
    assert command("sync", "--only", "lists", sandbox=sandbox, **restored).code == 0

    # forward again
    assert contents(earlier) == before
    ran = upgraded("sync", "--only", "lists")
    assert ran.code == 0, ran.text
    assert pushes(upgraded("push", "status", "--json")) == told
