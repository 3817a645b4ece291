"""`marketing-sync publish` and its line in `status`: a sentence and the right exit code in every case."""

import shutil
from pathlib import Path

import duckdb
import pytest

from tests.fixtures import Command
from warehouse.connection import open_database
from warehouse.publish import published_path
from warehouse.schema import ensure_schema


@pytest.fixture(scope="module")
def empty_warehouse(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("empty") / "warehouse.duckdb"
    with open_database(path) as connection:
        ensure_schema(connection)
        connection.execute(
            "insert into source.managers by name select 'main' account, 1 manager_id, 'Ann Lee' full_name"
        )
    return path


@pytest.fixture
def warehouse(home: Path, empty_warehouse: Path) -> Path:
    home.mkdir()
    return Path(shutil.copy(empty_warehouse, home))


def say_of_models(warehouse: Path, doubt: str) -> None:
    with open_database(warehouse) as connection:
        connection.execute("delete from sync.meta where name = 'models_doubt'")
        connection.execute("insert into sync.meta values ('models_doubt', ?)", [doubt])


def test_there_is_nothing_to_publish_before_the_first_sync(command: Command, home: Path) -> None:
    ran = command("publish")
    assert (ran.code, ran.out) == (1, "")
    assert "nothing has been synced" in ran.err


def test_models_that_were_never_built_are_not_published(command: Command, warehouse: Path) -> None:
    ran = command("publish")
    assert ran.code == 1
    assert ran.err == (
        "marketing-sync: error: nothing was published: the models are not built yet: "
        "run `marketing-sync sync`, or the job refresh_models\n"
    )
    assert "nothing yet; `marketing-sync sync` publishes" in command("status").out


@pytest.mark.slow
def test_a_bad_night_never_reaches_analysts(command: Command, warehouse: Path) -> None:
    say_of_models(warehouse, "")
    assert command("publish").code == 0
    before = published_path(warehouse.parent).read_bytes()
    say_of_models(warehouse, "test of campaigns: key, broken by 2 rows")
    ran = command("publish")
    assert ran.code == 1
    assert (
        "nothing was published: test of campaigns: key, broken by 2 rows. Correct that and run `marketing-sync sync`"
        in ran.err
    )
    assert published_path(warehouse.parent).read_bytes() == before


@pytest.mark.slow
def test_a_copy_says_what_becomes_of_personal_data(command: Command, warehouse: Path) -> None:
    say_of_models(warehouse, "")
    assert "published just now, personal data unmasked\n" in command("publish").out
    assert command("publish", MARKETING_PERSONAL_DATA="hash").code == 0
    assert "personal data hashed" in command("status").out
    assert "Personal data is left out." in (warehouse.parent / "report" / "index.html").read_text()


@pytest.mark.slow
def test_the_key_of_the_hashes_may_come_from_the_environment(command: Command, warehouse: Path) -> None:
    say_of_models(warehouse, "")
    hashes = set()
    for settings in ({"MARKETING_PERSONAL_KEY": "shared by several homes"}, {}):
        assert command("publish", MARKETING_PERSONAL_DATA="hash", **settings).code == 0
        with duckdb.connect(str(published_path(warehouse.parent)), read_only=True) as connection:
            hashes |= set(connection.execute("select full_name from source.managers").fetchall())
    assert len(hashes) == 2
    assert (warehouse.parent / "personal.key").exists()


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        (
            {"MARKETING_PERSONAL_DATA": "secret"},
            "MARKETING_PERSONAL_DATA='secret' cannot be used: keep, hash or drop is needed",
        ),
        (
            {"MARKETING_PERSONAL_KEY": "short"},
            "MARKETING_PERSONAL_KEY is too short: use at least 16 characters",
        ),
    ],
)
def test_wrong_settings_are_named(command: Command, settings: dict[str, str], sentence: str) -> None:
    ran = command("publish", **settings)
    assert (ran.code, ran.err) == (2, f"marketing-sync: error: {sentence}\n")
