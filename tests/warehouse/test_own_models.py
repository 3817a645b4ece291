"""Models of the user's: built behind ours, published under the same rules, and never in the way."""

from __future__ import annotations

from pathlib import Path
from shutil import copyfile

import duckdb
import pytest

from marketing_api.redaction import Secret
from warehouse.errors import WarehouseError
from warehouse.masking import Masking
from warehouse.models import BuildReport, ModelSettings, Status, build, publish_blockers
from warehouse.own_models import PROBLEM, new_model
from warehouse.policies import PersonalData
from warehouse.publish import publish, published_path
from warehouse.schema import fact


@pytest.fixture
def home(first_night: Path, tmp_path: Path) -> Path:
    """A home whose marts are built."""
    copyfile(first_night, tmp_path / "warehouse.duckdb")
    return tmp_path


def made(home: Path, **files: str) -> BuildReport:
    """What comes of building with these models: name → SQL, name_yml → description."""
    folder = home / "models"
    folder.mkdir(exist_ok=True)
    for name, text in files.items():
        (folder / (f"{name[:-4]}.yml" if name.endswith("_yml") else f"{name}.sql")).write_text(text)
    return build(home / "warehouse.duckdb", ModelSettings(own=folder))


def asked(file: Path, sql: str) -> list[tuple[object, ...]]:
    with duckdb.connect(str(file), read_only=True) as connection:
        return connection.execute(sql).fetchall()


def published(home: Path, personal_data: PersonalData = PersonalData.KEEP) -> Path:
    publish(home, Masking(personal_data, Secret("k" * 20), 1), check=publish_blockers)
    return published_path(home)


@pytest.mark.slow
def test_a_new_model_runs_as_it_is_and_is_published_with_its_comments(home: Path) -> None:
    new_model(home / "models", "clickers_by_list")
    report = build(home / "warehouse.duckdb", ModelSettings(own=home / "models"))
    assert report.problem == ""
    assert report.warnings == []
    assert {outcome.status for outcome in report.outcomes if outcome.is_own} == {Status.OK}
    file = published(home)
    assert asked(file, "select count(*) > 0 and bool_and(clicker_count <= member_count) from custom.clickers_by_list") == [(True,)]
    comments = "select comment is not null from duckdb_columns() where schema_name = 'custom'"
    assert set(asked(file, comments)) == {(True,)}


@pytest.mark.slow
def test_it_is_built_again_only_when_it_or_what_it_reads_changed(home: Path) -> None:
    made(home, members="select account, count(*) as n from {{ ref('contact_engagement') }} group by all")
    again = made(home)
    assert {outcome.status for outcome in again.outcomes if outcome.is_own} == {Status.UNCHANGED}
    changed = made(home, members="select account, count(*) as members from {{ ref('contact_engagement') }} group by all")
    assert [outcome.node.relation for outcome in changed.of(Status.OK)] == ["custom.members"]


@pytest.mark.slow
def test_what_is_personal_follows_from_the_sql(home: Path) -> None:
    made(
        home,
        people="select account, upper(email) as shouted, engagement_tier, 'fixed' as word from {{ ref('contact_engagement') }}",
        of_people="select account, left(shouted, 3) as beginning from {{ ref('people') }}",
        of_staging="select account, email, status from {{ ref('stg_contacts') }}",
    )
    file = published(home, PersonalData.DROP)
    assert asked(file, "select count(shouted), count(engagement_tier) > 0, count(word) > 0 from custom.people") == [(0, True, True)]
    assert asked(file, "select count(beginning) from custom.of_people") == [(0,)]
    assert asked(file, "select count(email), count(status) > 0 from custom.of_staging") == [(0, True)]


@pytest.mark.slow
def test_a_column_that_failed_to_be_made_anew_stays_as_personal_as_it_was(home: Path) -> None:
    made(home, people="select account, email as name from {{ ref('contact_engagement') }}")
    report = made(home, people="select account, 'nobody' as name, no_such_column from {{ ref('contact_engagement') }}")
    assert report.problem == ""
    assert any("people" in warning for warning in report.warnings)
    assert asked(published(home, PersonalData.DROP), "select count(name), count(*) > 0 from custom.people") == [(0, True)]


@pytest.mark.parametrize(
    "wrong",
    [
        "select * from {{ ref('nothing_of_that_name') }}",
        "select {{ 1 / 0 }} as x",
        "select * from {{ ref('contact_engagement' }}",
        "{{ config(materialized='ephemeral') }} select 1 as x",
        "select 1 as x; drop table marts.contact_engagement",
        "selekt 1",
        "select error('of a row') as x from {{ ref('contact_engagement') }}",
    ],
)
@pytest.mark.slow
def test_a_wrong_model_keeps_nothing_of_ours_from_being_published(home: Path, wrong: str) -> None:
    made(home, fine="select 1 as x")
    before = asked(home / "warehouse.duckdb", "select count(*) from marts.contact_engagement")
    report = made(home, wrong=wrong)
    assert report.problem == ""
    assert any("wrong" in warning for warning in report.warnings)
    file = published(home)
    assert asked(file, "select count(*) from marts.contact_engagement") == before
    assert asked(file, "select x from custom.fine") == [(1,)]
    (home / "models" / "wrong.sql").unlink()
    assert made(home).warnings == []


@pytest.mark.slow
def test_a_failed_test_of_the_users_is_said_and_the_table_is_there(home: Path) -> None:
    yml = "models: [{ name: twice, data_tests: [{ key: { arguments: { columns: [account] } } }] }]"
    report = made(home, twice="select account from {{ ref('contact_engagement') }}", twice_yml=yml)
    assert report.problem == ""
    assert [warning for warning in report.warnings if "twice" in warning]


@pytest.mark.slow
def test_a_model_cannot_leave_its_schema_nor_take_the_name_of_ours(home: Path) -> None:
    report = made(home, mine="{{ config(schema='marts') }} select 1 as x")
    assert [outcome.node.relation for outcome in report.outcomes if outcome.is_own] == ["custom.mine"]
    report = made(home, contact_engagement="select 1 as x")
    assert report.problem == ""
    assert any("contact_engagement" in warning for warning in report.warnings)
    assert asked(home / "warehouse.duckdb", "select count(*) > 1 from marts.contact_engagement") == [(True,)]


@pytest.mark.slow
def test_what_a_deleted_model_made_goes(home: Path) -> None:
    made(home, one="select 1 as x", two="{{ config(materialized='view') }} select * from {{ ref('one') }}")
    (home / "models" / "two.sql").unlink()
    made(home)
    assert asked(home / "warehouse.duckdb", "select table_name from duckdb_columns() where schema_name = 'custom'") == [("one",)]


@pytest.mark.parametrize("name", ["Vip", "a-b", "../x", "1st", "", "héros"])
def test_a_name_that_no_table_can_have_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(WarehouseError, match="cannot be a table's name"):
        new_model(tmp_path, name)


def test_a_file_that_is_there_is_not_overwritten(tmp_path: Path) -> None:
    new_model(tmp_path, "vip")
    with pytest.raises(WarehouseError, match="is there already"):
        new_model(tmp_path, "vip")


def test_what_the_last_deleted_model_made_goes_too(home: Path) -> None:
    made(home, one="select 1 as x")
    (home / "models" / "one.sql").unlink()
    made(home)
    assert asked(home / "warehouse.duckdb", "select count(*) from duckdb_columns() where schema_name = 'custom'") == [(0,)]


@pytest.mark.slow
def test_an_incremental_model_without_a_key_grows(home: Path) -> None:
    made(home, grown="{{ config(materialized='incremental') }} select count(*) as n from {{ ref('contact_engagement') }}")
    build(home / "warehouse.duckdb", ModelSettings(own=home / "models"), select=["grown"])
    assert asked(home / "warehouse.duckdb", "select count(*) from custom.grown") == [(2,)]


def test_a_new_model_does_not_take_the_name_of_ours(tmp_path: Path) -> None:
    with pytest.raises(WarehouseError, match="one of our models"):
        new_model(tmp_path, "contact_engagement", {"contact_engagement"})


@pytest.mark.slow
def test_what_is_wrong_is_remembered_until_it_is_corrected(home: Path) -> None:
    def remembered() -> str:
        with duckdb.connect(str(home / "warehouse.duckdb"), read_only=True) as connection:
            return fact(connection, PROBLEM) or ""

    made(home, wrong="select no_such_column from {{ ref('contact_engagement') }}")
    assert "model wrong" in remembered()
    made(home, wrong="select {{ run_query('select 1 from nowhere') if execute }} as x")
    assert remembered().startswith(f"the models in {home / 'models'} cannot be read: ")
    assert "leaked" not in remembered()
    made(home, wrong="select 1 as x")
    assert remembered() == ""
