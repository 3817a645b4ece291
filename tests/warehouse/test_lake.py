"""The lake: every shard's published tables in one place, versions that replace one another without disturbing
anybody."""

from __future__ import annotations

import datetime as dt
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import duckdb
import pytest

from tests.warehouse.counting_storage import CountingStorage
from warehouse import lake
from warehouse.errors import ForeignFolder, NothingPublished, StorageUnavailable
from warehouse.policies import PersonalData
from warehouse.publish import published_path
from warehouse.storage import Storage

NOW = dt.datetime(2026, 3, 20, 4, tzinfo=dt.UTC)
HOUR = dt.timedelta(hours=1)

#: The published file of a home, as small as the fleet's views allow.
_TABLES = """
    create schema source; create schema sync;
    create table source.contacts as select 'a' as account, 1 as list_id, contact_id, timestamptz '2026-03-18' as registered_at,
        null::timestamptz as _deleted_at from range({contacts}) as t(contact_id);
    create table source.timeline_events as select 'a' as account, 1 as contact_id, 'k' as event_key limit 1;
    create table source.campaigns as select 'a' as account, 1 as campaign_id, null::timestamptz as _deleted_at;
    create table sync.coverage as select 'a' as account, timestamptz '2026-03-20 02:00+00' as as_of, true as is_complete;
    create table sync.rejected_records as select 'a' as account where false;
    create table sync.requests as select 'a' as account, 200 as http_status, timestamptz '2026-03-20 01:00+00' - interval (day) day as requested_at
        from range(3) as t(day);
    create table sync.runs as select 'r' as run_id, 'failed' as outcome, timestamptz '2026-03-19' as started_at;
    create table sync.published as select ?::timestamptz as published_at, ?::timestamptz as data_as_of, ? as personal_data, 5 as group_min,
        8 as table_count, 9 as row_count;
"""


def publish(
    home: Path,
    at: dt.datetime = NOW,
    *,
    contacts: int = 3,
    personal: PersonalData = PersonalData.KEEP,
    more: str = "",
) -> Path:
    path = published_path(home)
    path.parent.mkdir(parents=True, exist_ok=True)
    made = path.with_suffix(".new")
    with duckdb.connect(str(made)) as connection:
        connection.execute("set timezone = 'UTC'")
        for statement in _TABLES.format(contacts=contacts).split(";")[:-1]:
            connection.execute(statement, [at, at, personal] if "?" in statement else None)
        connection.execute(more or "select 1")
    made.replace(path)
    return home


@pytest.fixture
def storage(tmp_path: Path) -> Storage:
    return Storage(str(tmp_path / "the team's lake [1]"))


def all_of(storage: Storage, sql: str) -> list[tuple[Any, ...]]:
    with TemporaryDirectory() as folder:
        file = Path(folder, "all.duckdb")
        lake.write_views(file, storage, exported(storage))
        with duckdb.connect(str(file), read_only=True) as connection:
            connection.execute("set timezone = 'UTC'")
            storage.register(connection)
            return connection.execute(sql).fetchall()


def exported(storage: Storage) -> list[lake.Manifest]:
    return [each for each in lake.manifests(storage).values() if each]


def folders(storage: Storage, shard: str) -> set[str]:
    return {name.split("/")[2] for name in storage.names(f"shards/{shard}")} - {"manifest.json"}


def test_one_query_sees_every_shard(storage: Storage, tmp_path: Path) -> None:
    for shard, contacts in {"NORTH": 3, "SOUTH": 4}.items():
        lake.export(publish(tmp_path / shard, contacts=contacts), storage, shard, NOW)
    assert all_of(
        storage, "select shard, account, count(*) from source.contacts group by all order by all"
    ) == [
        ("NORTH", "a", 3),
        ("SOUTH", "a", 4),
    ]
    manifest = lake.manifest(storage, "NORTH")
    assert manifest is not None
    assert {f"{each.schema}.{each.name}": each.rows for each in manifest.tables}["source.contacts"] == 3
    assert manifest.files.items() <= storage.names().items()


def test_shards_may_lack_columns_and_tables_that_others_have(storage: Storage, tmp_path: Path) -> None:
    newer = (
        "alter table source.contacts add column score double; create table source.lists as select "
        "'a' as account"
    )
    lake.export(publish(tmp_path / "new", more=newer), storage, "NEW", NOW)
    lake.export(
        publish(tmp_path / "old", more="alter table source.contacts alter list_id type varchar"),
        storage,
        "OLD",
        NOW,
    )
    assert all_of(
        storage, "select shard, count(*), count(score) from source.contacts group by all order by all"
    ) == [
        ("NEW", 3, 0),
        ("OLD", 3, 0),
    ]
    assert all_of(storage, "select shard from source.lists") == [("NEW",)]


def test_types_that_differ_are_read_as_one_that_holds_both(storage: Storage, tmp_path: Path) -> None:
    lake.export(publish(tmp_path / "new"), storage, "NEW", NOW)
    text = "alter table source.contacts alter list_id type varchar using 'x'"
    lake.export(publish(tmp_path / "old", more=text), storage, "OLD", NOW)
    assert all_of(storage, "select distinct shard, list_id from source.contacts order by all") == [
        ("NEW", "1"),
        ("OLD", "x"),
    ]


def test_models_of_the_users_own_may_call_columns_as_the_views_do(storage: Storage, tmp_path: Path) -> None:
    own = (
        "create schema own; create table own.a as select 'x' as shard, 1 as n; "
        "create table own.b as select 'x' as filename, 1 as n"
    )
    lake.export(publish(tmp_path / "home", more=own), storage, "N", NOW)
    assert all_of(storage, "from own.a") == [("N", 1)]
    assert all_of(storage, "from own.b where shard = 'N'") == [("N", "x", 1)]


def test_the_file_of_views_is_of_a_version_that_duckdb_1_5_reads(storage: Storage, tmp_path: Path) -> None:
    lake.export(publish(tmp_path / "home"), storage, "N", NOW)
    assert all_of(storage, "select tags['storage_version'] from duckdb_databases() where not internal") == [
        ("v1.5.0+",)
    ]


@pytest.mark.parametrize("where", ["shard = 'NORTH'", "shard in fleet.shards_of('a')"])
def test_a_query_of_one_shard_opens_the_files_of_no_other(
    storage: Storage, tmp_path: Path, where: str
) -> None:
    lake.export(publish(tmp_path / "home"), storage, "NORTH", NOW)
    other = "update source.contacts set account = 'b'; update sync.coverage set account = 'b'"
    south = lake.export(publish(tmp_path / "south", more=other), storage, "SOUTH", NOW)
    for name in south.files:
        storage.write(name, b"cannot be read")
    assert all_of(storage, f"select shard, count(*) from source.contacts where {where} group by all") == [
        ("NORTH", 3)
    ]
    with pytest.raises(duckdb.Error, match="SOUTH"):
        all_of(storage, "select count(*) from source.contacts")


def test_the_fleet_is_known_from_the_manifests_alone(storage: Storage, tmp_path: Path) -> None:
    current = lake.export(publish(tmp_path / "home"), storage, "N", NOW)
    for name in current.files:
        storage.write(name, b"cannot be read")
    assert all_of(storage, "select shard, published_at, personal_data from fleet.shards") == [
        ("N", NOW, "keep")
    ]
    assert all_of(storage, "select fleet.shards_of('a'), fleet.shards_of('b')") == [(["N"], [])]
    assert [(each["account"], each["contacts"]) for each in lake.fleet(exported(storage))] == [("a", 3)]


def test_the_fleet_has_a_row_per_account(storage: Storage, tmp_path: Path) -> None:
    lake.export(publish(tmp_path / "home"), storage, "NORTH", NOW)
    (found,) = all_of(
        storage,
        "select account, shard, contacts, contacts_7_days, events, campaigns, failed_runs_7_days, "
        "rejected_records, incomplete_parts, "
        "requests_last_night, requests_30_days, data_as_of, published_at = (select published_at from "
        "fleet.shards) from fleet.accounts",
    )
    assert found == ("a", "NORTH", 3, 3, 1, 1, 1, 0, 0, 1, 3, NOW - 2 * HOUR, True)


def test_a_version_stays_for_its_readers_until_the_grace_is_over(storage: Storage, tmp_path: Path) -> None:
    first, second, third = NOW, NOW + HOUR, NOW + HOUR + lake.GRACE
    versions = [
        lake.export(publish(tmp_path / "home", at), storage, "N", at).version for at in (first, second)
    ]
    assert folders(storage, "N") == set(versions)
    versions.append(lake.export(publish(tmp_path / "home", third), storage, "N", third).version)
    assert folders(storage, "N") == set(versions[1:])


@pytest.mark.parametrize(
    ("before", "after"), [(PersonalData.KEEP, PersonalData.HASH), (PersonalData.HASH, PersonalData.DROP)]
)
def test_what_shows_more_of_people_goes_at_once(
    storage: Storage, tmp_path: Path, before: PersonalData, after: PersonalData
) -> None:
    lake.export(publish(tmp_path / "home", personal=before), storage, "N", NOW)
    current = lake.export(publish(tmp_path / "home", NOW + HOUR, personal=after), storage, "N", NOW + HOUR)
    assert folders(storage, "N") == {current.version}


def test_what_showed_less_stays_and_what_showed_more_in_between_goes(
    storage: Storage, tmp_path: Path
) -> None:
    modes = (PersonalData.DROP, PersonalData.KEEP, PersonalData.HASH)
    made = [
        lake.export(
            publish(tmp_path / "home", NOW + n * HOUR, personal=mode), storage, "N", NOW + n * HOUR
        ).version
        for n, mode in enumerate(modes)
    ]
    assert folders(storage, "N") == {made[0], made[2]}


def test_an_export_that_failed_shows_the_version_before_and_resumes(tmp_path: Path) -> None:
    address = str(tmp_path / "lake")
    home = publish(tmp_path / "home")
    before = lake.export(home, Storage(address), "N", NOW)
    publish(home, NOW + HOUR, contacts=5)
    broken = CountingStorage(address, most=3)
    with pytest.raises(StorageUnavailable):
        lake.export(home, broken, "N", NOW + HOUR)
    assert lake.manifest(broken, "N") == before
    again = CountingStorage(address)
    current = lake.export(home, again, "N", NOW + 2 * HOUR)
    assert not set(broken.sent) & set(again.sent)
    assert {*broken.sent, *again.sent} == set(current.files)
    assert current.files.items() <= again.names().items()
    once_more = CountingStorage(address)
    assert lake.export(home, once_more, "N", NOW + 3 * HOUR) == current
    assert not once_more.sent


def test_what_a_failed_export_left_is_removed_by_the_next_one(tmp_path: Path) -> None:
    address, home = str(tmp_path / "lake"), publish(tmp_path / "home")
    with pytest.raises(StorageUnavailable):
        lake.export(home, CountingStorage(address, most=3), "N", NOW)
    current = lake.export(publish(home, NOW + HOUR), Storage(address), "N", NOW + HOUR)
    assert folders(Storage(address), "N") == {current.version}


def test_a_rollback_goes_back_without_sending_anything(tmp_path: Path) -> None:
    address, home = str(tmp_path / "lake"), tmp_path / "home"
    first = lake.export(publish(home), Storage(address), "N", NOW)
    second = lake.export(publish(home, NOW + HOUR, contacts=9), Storage(address), "N", NOW + HOUR)
    watched = CountingStorage(address)
    current = lake.export(publish(home), watched, "N", NOW + 2 * HOUR)
    assert (current.version, watched.sent, set(current.earlier)) == (first.version, [], {second.version})


def test_nothing_is_exported_before_anything_is_published(storage: Storage, tmp_path: Path) -> None:
    with pytest.raises(NothingPublished):
        lake.export(tmp_path / "home", storage, "N", NOW)
    assert storage.names() == {}


def late(storage: Storage) -> None:
    """Nothing happens to it; two days pass."""


def lose(storage: Storage) -> None:
    storage.delete([next(name for name in storage.names() if "contacts" in name)])


def damage(storage: Storage) -> None:
    storage.write("shards/N/manifest.json", b"{")


@pytest.mark.parametrize(
    ("change", "days", "said"),
    [
        (late, 0, None),
        (late, 3, "not been exported since"),
        (lose, 0, "1 files are missing"),
        (damage, 0, "no manifest that can be read"),
    ],
)
def test_what_is_the_matter_with_a_shard_is_said(
    storage: Storage, tmp_path: Path, change: Callable[[Storage], None], days: int, said: str | None
) -> None:
    lake.export(publish(tmp_path / "home"), storage, "N", NOW)
    change(storage)
    lacking = lake.missing(storage, exported(storage))
    found = list(lake.problems(lake.manifests(storage), NOW + dt.timedelta(days), lacking))
    assert len(found) == bool(said)
    assert not said or said in found[0]


def test_different_treatment_of_personal_data_is_said(storage: Storage, tmp_path: Path) -> None:
    for mode in (PersonalData.KEEP, PersonalData.DROP):
        lake.export(publish(tmp_path / mode, personal=mode), storage, mode.value, NOW)
    assert "differ in what they show of people (drop, keep)" in "".join(
        lake.problems(lake.manifests(storage), NOW)
    )


_READER = """
import select, sys, duckdb
reads, seen = 0, set()
while not select.select([sys.stdin], [], [], 0)[0]:
    with duckdb.connect(sys.argv[1], read_only=True) as connection:
        seen.update(connection.execute("select count(*), sum(contact_id) from source.contacts").fetchall())
    reads += 1
    if reads == 1:
        print("reading", flush=True)
print(reads > 1, seen)
"""


@pytest.mark.attack
def test_a_reader_of_an_old_view_file_is_never_disturbed(storage: Storage, tmp_path: Path) -> None:
    home = publish(tmp_path / "home", contacts=1000)
    lake.export(home, storage, "N", NOW)
    file = tmp_path / "all.duckdb"
    lake.write_views(file, storage, exported(storage))
    with subprocess.Popen(
        [sys.executable, "-c", _READER, str(file)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as reader:
        assert reader.stdout is not None
        assert reader.stdout.readline() == "reading\n"
        for n in range(1, 51):
            moment = NOW + n * lake.GRACE / 51
            lake.export(publish(home, moment, contacts=1000 + n), storage, "N", moment)
        assert reader.communicate()[0] == "True {(1000, 499500)}\n"
    lake.write_views(file, storage, exported(storage))
    with duckdb.connect(str(file), read_only=True) as connection:
        assert connection.execute("select count(*) from source.contacts").fetchall() == [(1050,)]


def test_a_shard_is_one_home(tmp_path: Path, storage: Storage) -> None:
    home = publish(tmp_path / "home")
    lake.export(home, storage, "N", NOW)
    lake.export(home, storage, "N", NOW, home_id="one")
    lake.export(publish(home, NOW + HOUR), storage, "N", NOW + HOUR, home_id="one")
    with pytest.raises(ForeignFolder, match="is another home"):
        lake.export(publish(home, NOW + 2 * HOUR), storage, "N", NOW + 2 * HOUR, home_id="two")


def test_what_sweeps_a_shard_leaves_what_it_did_not_write(tmp_path: Path, storage: Storage) -> None:
    theirs = [
        "shards/N/notes.txt",
        "shards/N/20260101T000000000000Z/mine.parquet",
        "shards/N/warehouse.duckdb",
        "shards/N/a/b.1234abcd.parquet",
    ]
    for name in theirs:
        storage.write(name, b"of others")
    storage.write("shards/N/20260101T000000000000Z/source.lists.1234abcd.parquet", b"of a failed export")
    lake.export(publish(tmp_path / "home"), storage, "N", NOW)
    names = storage.names()
    assert set(theirs) <= set(names)
    assert "shards/N/20260101T000000000000Z/source.lists.1234abcd.parquet" not in names
