"""A copy of which only what changed was written is the copy that would be written whole."""

from __future__ import annotations

import datetime as dt
import json
import shutil
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import duckdb
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from marketing_api.redaction import Secret
from warehouse.connection import connect
from warehouse.masking import Masking
from warehouse.policies import PersonalData
from warehouse.publish import publish, published_path, roll_back
from warehouse.schema import columns_of, comments, kinds_of

KEEP = Masking(PersonalData.KEEP)
HASH = Masking(PersonalData.HASH, Secret("k" * 20))
#: What may become of a warehouse between two nights.
CHANGES = (
    "select 1",
    "insert into source.contacts by name select 'main' account, 8 list_id, 9 contact_id, 'new@example.com' email",
    "update source.contacts set email = 'other@example.com' where contact_id = 1",
    "delete from source.contacts where contact_id = 2",
    "update source.lists set name = name || '!'",
    "update marts.sizes set contact_count = contact_count + 1",
    "create or replace table marts.empty as select 1 as n limit 0",
    "create or replace table marts.empty as select 'x' as n limit 0",
    "drop table if exists marts.empty",
    "comment on table marts.sizes is 'Other words.'",
    "create or replace view marts.sizes_again as select *, now() - now() as age from marts.sizes",
    "create or replace view marts.sizes_again as from marts.sizes",
    "create or replace table marts.sizes as from marts.sizes order by random()",
)


def contents(home: Path) -> dict[str, Any]:
    """All that a reader sees, but for the moments of publishing."""
    with duckdb.connect(str(published_path(home)), read_only=True) as connection:
        kinds, columns = kinds_of(connection), columns_of(connection)
        seen: dict[str, Any] = {"kinds": kinds, "columns": columns, "comments": comments(connection, columns)}
        for relation in kinds.keys() - {"sync.published", "sync.schema_changes"}:
            seen[relation] = connection.execute(f"from {relation} order by all").fetchall()
        return seen


def change(home: Path, sql: str) -> None:
    with connect(home / "warehouse.duckdb") as connection:
        connection.execute(sql)


def tamper(home: Path) -> None:
    """Only a table that is kept has this afterwards."""
    with duckdb.connect(str(published_path(home))) as connection:
        connection.execute("update source.lists set name = 'kept'")


def name_of(home: Path) -> str:
    return str(contents(home)["source.lists"][0][2])


@pytest.mark.slow
@pytest.mark.parametrize("masking", [KEEP, HASH], ids=["keep", "hash"])
@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(nights=st.lists(st.lists(st.sampled_from(CHANGES), max_size=3), min_size=1, max_size=4))
def test_it_is_as_if_written_whole(filled: Path, masking: Masking, nights: list[list[str]]) -> None:
    with TemporaryDirectory() as folder:
        home = Path(shutil.copytree(filled, Path(folder, "home")))
        for changes in nights:
            for sql in changes:
                change(home, sql)
            published = publish(home, masking)
            kept = contents(home)
            whole = publish(home, masking, is_whole=True)
            assert kept == contents(home)
            assert (published.table_count, published.data_as_of) == (whole.table_count, whole.data_as_of)


def test_what_did_not_change_is_kept(filled: Path) -> None:
    publish(filled)
    tamper(filled)
    change(filled, "delete from source.contacts")
    publish(filled)
    assert (name_of(filled), contents(filled)["source.contacts"]) == ("kept", [])


@pytest.mark.parametrize(
    "masking",
    [HASH, Masking(PersonalData.DROP), KEEP],
    ids=["hash", "drop", "keep"],
)
def test_a_copy_that_shows_people_otherwise_is_written_whole(filled: Path, masking: Masking) -> None:
    publish(filled)
    tamper(filled)
    publish(filled, masking)
    assert (name_of(filled) == "kept") == (masking.personal_data is PersonalData.KEEP)


def test_other_code_writes_it_whole(filled: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    publish(filled)
    tamper(filled)
    monkeypatch.setattr("warehouse.unchanged.code_digest", lambda: "another version")
    publish(filled)
    assert name_of(filled) != "kept"


def test_what_was_deleted_is_out_of_the_file_after_a_week(
    filled: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun = publish(filled).published_at
    for days in range(1, 9):
        tamper(filled)
        monkeypatch.setattr("warehouse.publish.utc_now", lambda days=days: begun + dt.timedelta(days=days))
        publish(filled)
        assert (name_of(filled) == "kept") == (days < 8)


def test_room_of_what_was_replaced_is_given_back(filled: Path) -> None:
    change(filled, "create table marts.large as select range, hash(range) as h from range(1000000)")
    publish(filled)
    large = published_path(filled).stat().st_size
    change(filled, "create or replace table marts.large as from range(10)")
    for _ in range(2):
        publish(filled)
    assert published_path(filled).stat().st_size < large / 2


@pytest.mark.parametrize("content", [b"", b"{}", b"[1]", b"\xff"], ids=["empty", "object", "list", "binary"])
def test_a_damaged_note_is_none(filled: Path, content: bytes) -> None:
    publish(filled)
    tamper(filled)
    published_path(filled).with_name(".versions.json").write_bytes(content)
    publish(filled)
    assert name_of(filled) != "kept"


def test_a_note_is_of_one_file(filled: Path) -> None:
    """After going back, and where a process was killed between the file and its note."""
    publish(filled)
    tamper(filled)
    change(filled, "delete from source.contacts")
    publish(filled)
    roll_back(filled)
    assert len(contents(filled)["source.contacts"]) == 3
    publish(filled)
    assert (name_of(filled), contents(filled)["source.contacts"]) == ("News", [])


def test_a_note_names_no_person(filled: Path) -> None:
    publish(filled, HASH)
    text = published_path(filled).with_name(".versions.json").read_text(encoding="utf-8")
    assert "ann1" not in text
    assert json.loads(text)["versions"].keys() >= {"source.contacts", "marts.sizes"}
