"""Tables of the user's: made of the masked copy, sealed, in their order; what fails costs itself."""

from collections.abc import Callable
from pathlib import Path

import duckdb
import pytest

from marketing_api.redaction import Secret
from warehouse.custom_tables import read_files
from warehouse.masking import Masking
from warehouse.policies import PersonalData
from warehouse.publish import list_custom_failures, publish_copy, published_path
from warehouse.sealed_query import QueryLimits

HASH, KEEP = Masking(PersonalData.HASH, Secret("k" * 20)), Masking(PersonalData.KEEP)
Ask = Callable[[str], list[tuple[object, ...]]]
Write = Callable[..., list[str]]

#: It takes time, and nothing else.
ENDLESS = "select count(*) as n from range(100000) a, range(100000) b, range(100000) c where a.range + b.range <> c.range"


@pytest.fixture
def write(filled: Path) -> Write:
    """Write files (name → SQL) and publish; returns what is wrong."""

    def write_files(masking: Masking = KEEP, seconds: float = 60, **files: str) -> list[str]:
        folder = filled / "models"
        folder.mkdir(exist_ok=True)
        for name, sql in files.items():
            (folder / f"{name}.sql").write_text(sql)
        publish_copy(filled, masking, limits=QueryLimits(seconds=seconds, memory_bytes=200_000_000))
        return list_custom_failures(published_path(filled))

    return write_files


@pytest.fixture
def ask(filled: Path) -> Ask:
    def run(sql: str) -> list[tuple[object, ...]]:
        with duckdb.connect(str(published_path(filled)), read_only=True) as connection:
            return connection.execute(sql).fetchall()

    return run


def test_a_file_becomes_a_table_with_its_description(write: Write, ask: Ask) -> None:
    sql = "-- People by list,\n-- every night.\nselect list_id, count(*) as people from source.contacts group by all;\n-- end\n"
    assert write(by_list=sql) == []
    assert ask("from custom.by_list") == [(7, 3)]
    comments = "select comment, table_name from duckdb_tables() where schema_name = 'custom'"
    assert ask(comments) == [("People by list, every night.", "by_list")]
    assert ask("select * exclude built_at, built_at is null from sync.custom_tables") == [
        ("custom.by_list", None, False)
    ]
    assert ask("select count(*) from duckdb_views() where schema_name = 'custom'") == [(0,)]


def test_tables_are_made_in_the_order_in_which_they_read_one_another(write: Write, ask: Ask) -> None:
    files = {
        "a": "select b.n + 1 as n from Custom.B as b join custom.c using (m)",
        "b": "with q as (select max(n) as n from custom.c) select n + 1 as n, 0 as m from q",
        "c": "select 1 as n, 0 as m",
    }
    assert write(**files) == []
    assert ask("from custom.a") == [(3,)]


def test_what_a_deleted_file_made_goes(filled: Path, write: Write, ask: Ask) -> None:
    write(one="select 1 as n", two="select 2 as n")
    (filled / "models" / "two.sql").unlink()
    assert write(one="select 11 as n") == []
    assert ask("select table_name from duckdb_tables() where schema_name = 'custom'") == [("one",)]
    assert ask("from custom.one") == [(11,)]


def test_a_table_over_a_masked_copy_shows_what_the_copy_shows(write: Write, ask: Ask) -> None:
    assert write(HASH, people="select email from source.contacts") == []
    assert ask("select count(*), count(*) filter (contains(email, '@')) from custom.people") == [(3, 0)]


# ---- what fails costs itself


WRONG = {
    "two": ("select 1; select 2", "has to be one SELECT"),
    "nothing": ("-- only words\n", "has to be one SELECT"),
    "view": ("create view v as select 1", "has to be a SELECT"),
    "words": ("select {{ ref('x') }}", "Parser Error"),
    "column": ("select nothing from source.contacts", 'column "nothing" not found'),
    "lost": ("from custom.nowhere", "there is no models/nowhere.sql"),
    "spaced": ('from custom."a b"', "there is no models/a b.sql"),
    "behind": ("from custom.column", "it reads custom.column, which could not be made"),
    "itself": ("from custom.itself", "custom.itself → custom.itself"),
    "here": ("from custom.there", "custom.here → custom.there → custom.here"),
    "there": ("from custom.here", "read one another"),
    "deletes": ("with d as (delete from source.lists returning *) from d", "data-modifying"),
    "inserts": ("with i as (insert into custom.fine values (2) returning *) from i", "data-modifying"),
    "value": ("select email::int as n from source.contacts", "may contain personal data"),
    "address": ('select 1 as n "ann@example.com"', "Parser Error"),
    "csv": ("from read_csv('/etc/passwd')", "no files"),
    "text": ("from read_text('/etc/passwd')", "no files"),
    "sniffed": ("from sniff_csv('/etc/passwd')", "no files"),
    "globbed": ("from glob('/etc/*')", "no files"),
    "net": ("from 'https://example.com/x.csv'", "no files"),
    "copied": ("with c as (copy source.lists to 'x.csv') select 1 as n", "COPY statement"),
    "setting": ("set enable_external_access = true", "has to be a SELECT"),
    "getenv": ("select getenv('HOME') as x", "does not exist"),
    "variable": ("from WRONG", "does not exist"),
    "1st": ("select 1 as n", "cannot name a table"),
    "a-b": ("select 1 as n", "cannot name a table"),
}


def test_a_wrong_file_is_named_and_costs_itself(filled: Path, write: Write, ask: Ask) -> None:
    problems = write(fine="select 1 as n", **{name: sql for name, (sql, _) in WRONG.items()})
    reasons = dict(line.removeprefix("custom.").split(" was not made: ", 1) for line in problems)
    assert reasons.keys() == WRONG.keys()
    assert {name for name, (_, part) in WRONG.items() if part not in reasons[name]} == set(), reasons
    assert "ann@" not in str(reasons)
    assert ask("from custom.fine") == [(1,)]
    assert ask("select count(*) from source.lists") == [(1,)]
    assert ask("select table_name from duckdb_tables() where schema_name = 'custom'") == [("fine",)]
    assert not list(filled.rglob("*.csv"))


def test_links_and_what_is_no_text_are_not_read(filled: Path) -> None:
    folder, secret = filled / "models", filled / "secret"
    folder.mkdir()
    secret.write_text("select 'secret' as x")
    (folder / "link.sql").symlink_to(secret)
    (folder / "folder.sql").mkdir()
    (folder / "bytes.sql").write_bytes(b"select '\xff'")
    (folder / "large.sql").write_text("-- " + "x" * 1_000_000)
    (folder / ".hidden.sql").write_text("select 1")
    (folder / "vip.sql").write_text("select 1")
    (folder / "VIP.sql").write_text("select 2")
    problems = {name: file.reason for name, file in read_files(filled).items()}
    assert problems.keys() == {"link", "folder", "bytes", "large", "vip"}
    assert "is a link" in problems["link"]
    assert "VIP.sql and vip.sql are one name" in problems["vip"]
    assert all(problems.values())
    folder.rename(filled / "elsewhere")
    folder.symlink_to(filled / "elsewhere")
    assert {file.sql for file in read_files(filled).values()} == {""}


@pytest.mark.slow
def test_an_endless_and_a_hungry_file_cost_themselves(write: Write, ask: Ask) -> None:
    hungry = "select sum(n) as n from (select unnest(range(1000000000)) n)"
    problems = write(
        seconds=5,
        a="select 1 as n",
        endless=ENDLESS,
        hungry=hungry,
        reads="from custom.endless",
        z="select 2 as n",
    )
    assert [line.partition(" ")[0] for line in problems] == [
        "custom.endless",
        "custom.hungry",
        "custom.reads",
    ]
    assert "longer than 5 s" in problems[0]
    assert "of memory" in problems[1]
    assert ask("select a.n, z.n from custom.a a, custom.z z") == [(1, 2)]


def test_a_table_that_fails_goes_until_its_file_is_right_again(write: Write, ask: Ask) -> None:
    write(people="select email from source.contacts")
    (problem,) = write(people="select nothing from source.contacts")
    assert problem.startswith("custom.people was not made")
    assert ask("select count(*) from duckdb_tables() where schema_name = 'custom'") == [(0,)]
    assert ask("select built_at from sync.custom_tables") == [(None,)]
    assert write(people="select 1 as n") == []
    assert ask("select error from sync.custom_tables") == [(None,)]
