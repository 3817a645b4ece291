"""Under `hash` and `drop`, nobody is found in the published file or in the report; joins still work when
hashed."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

from report.render import write_report
from tests.fixtures import Night
from tests.pipelines.people import people_of, values_of
from tests.warehouse.test_masking import hashed
from warehouse.masking import Masking, personal_key
from warehouse.policies import PersonalData
from warehouse.publish import publish_copy, published_path

pytestmark = pytest.mark.slow

WAYS = ("keep", "hash", "drop")


@pytest.fixture(scope="module")
def homes(nights: tuple[Night, Night], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The warehouse of a whole night, published and reported in each way."""
    made = {}
    for way in WAYS:
        made[way] = home = tmp_path_factory.mktemp(way)
        shutil.copy(nights[1].home / "warehouse.duckdb", home)
        publish_copy(home, Masking(PersonalData(way), personal_key(home)))
        write_report(home)
    return made


def texts(home: Path) -> Iterator[tuple[str, str]]:
    """(where, row) of the published tables, and of the report, which is one."""
    with duckdb.connect(str(published_path(home)), read_only=True) as connection:
        for schema, name in connection.execute(
            "select schema_name, table_name from duckdb_tables()"
        ).fetchall():
            rows = connection.execute(f'select t::varchar from "{schema}"."{name}" as t').fetchall()
            yield from ((f"{schema}.{name}", row) for (row,) in rows)
    yield "report", (home / "report" / "index.html").read_text(encoding="utf-8")


@pytest.mark.attack
def test_nobody_is_found_unless_they_are_kept(homes: dict[str, Path]) -> None:
    people = people_of(homes["keep"]) | values_of(homes["keep"])
    assert len([text for text in people if "@" in text]) > 50
    assert len([text for text in people if text.startswith("+1555")]) > 20, "phone numbers of custom fields"
    assert len([text for text in people if " " in text]) > 20, "names and what was written"
    kept: set[str] = set()
    for where, row in texts(homes["keep"]):
        if where not in kept and any(text in row for text in people):
            kept.add(where)
    assert kept >= {"source.contacts", "marts.contact_engagement", "report"}
    for way in ("hash", "drop"):
        rows = {row: where for where, row in texts(homes[way])}
        every = "\n".join(rows)
        found = [text for text in people if text in every]
        assert found == [], [(where, text) for row, where in rows.items() for text in found if text in row]


def test_no_address_is_left_in_any_other_text(homes: dict[str, Path]) -> None:
    left = {
        way: [where for where, row in texts(homes[way]) if "@example" in row or "%40example" in row]
        for way in WAYS
    }
    assert left["keep"]
    assert left["hash"] + left["drop"] == []


def test_hashed_addresses_still_join(homes: dict[str, Path]) -> None:
    def ask(home: Path, sql: str) -> list[tuple[str | int, ...]]:
        with duckdb.connect(str(published_path(home)), read_only=True) as connection:
            return connection.execute(sql).fetchall()

    joined = (
        "select count(*) from source.coupons as c join marts.contact_engagement as e on "
        "lower(c.email) = e.email"
    )
    assert ask(homes["hash"], joined) == ask(homes["keep"], joined) != [(0,)]
    known, shown = (ask(homes[way], "select email from source.coupons") for way in ("keep", "hash"))
    assert {hashed(str(email), personal_key(homes["hash"])) for (email,) in known} == {
        email for (email,) in shown
    }
