"""`publish --to`: one object and its `status.json`, whole or not at all, and never over another home's."""

import json
import shutil
from pathlib import Path
from typing import Any

import duckdb
import fsspec
import pytest

from home.settings import Settings
from marketing_sync.uploading import upload_published
from tests.fixtures import Command
from tests.marketing_sync.test_publish_command import empty_warehouse, say_of_models, warehouse
from warehouse.publish import published_path

__all__ = ["empty_warehouse", "warehouse"]  # fixtures


@pytest.fixture
def home(home: Path, warehouse: Path) -> Path:
    say_of_models(warehouse, "")
    (home / "identity.json").write_text('{"home_id": "one", "kind": "sandbox"}')
    return home


def managers(folder: Path) -> list[tuple[Any, ...]]:
    with duckdb.connect() as connection:
        connection.execute(f"attach '{folder}/marketing.duckdb' as home (read_only)")
        return connection.execute("select full_name from home.source.managers").fetchall()


def test_readers_attach_what_was_uploaded_and_find_its_status(
    command: Command, home: Path, tmp_path: Path
) -> None:
    place = tmp_path / "all accounts" / "main"
    for _ in range(2):
        ran = command("publish", "--to", str(place), "--json")
        assert ran.code == 0, ran.text
    assert json.loads(ran.out)["uploaded"] == f"{place}/marketing.duckdb"
    assert managers(place) == [("Ann Lee",)]
    assert json.loads((place / "status.json").read_bytes())["home_id"] == "one"
    assert {path.name for path in place.rglob("*") if path.is_file()} == {"marketing.duckdb", "status.json"}


def test_an_upload_that_ends_halfway_leaves_the_one_before(
    command: Command, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "shared"
    assert command("publish", "--to", str(place)).code == 0
    before = (place / "marketing.duckdb").read_bytes()

    def copy_half(source: Path, target: Path) -> None:
        target.write_bytes(Path(source).read_bytes()[:100])
        raise OSError(28, "no space left")

    monkeypatch.setattr("marketing_sync.uploading.shutil.copyfile", copy_half)
    ran = command("publish", "--to", str(place))
    assert (ran.code, "published, but not uploaded" in ran.err) == (1, True), ran.text
    assert (place / "marketing.duckdb").read_bytes() == before
    assert managers(place) == [("Ann Lee",)]


def test_another_homes_files_are_not_replaced(command: Command, home: Path, tmp_path: Path) -> None:
    place = tmp_path / "shared"
    assert command("publish", "--to", str(place)).code == 0
    before = (place / "marketing.duckdb").stat().st_mtime_ns
    (home / "identity.json").write_text('{"home_id": "two", "kind": "sandbox"}')
    ran = command("publish", "--to", str(place))
    assert (ran.code, "copy of another home" in ran.err) == (2, True), ran.text
    assert (place / "marketing.duckdb").stat().st_mtime_ns == before


def test_object_storage_has_the_same_two_objects(home: Path, tmp_path: Path) -> None:
    published_path(home).parent.mkdir()
    shutil.copy(home / "warehouse.duckdb", published_path(home))
    assert (
        upload_published(Settings(home), "memory://bucket/main/") == "memory://bucket/main/marketing.duckdb"
    )
    files = fsspec.filesystem("memory")
    assert files.cat_file("/bucket/main/marketing.duckdb") == published_path(home).read_bytes()
    assert json.loads(files.cat_file("/bucket/main/status.json"))["home_id"] == "one"


@pytest.mark.parametrize(
    ("url", "sentence"),
    [
        (
            "gs://bucket/main",
            "published, but not uploaded: gs://bucket/main cannot be used (Please install gcsfs",
        ),
        ("/proc/none/main", "published, but not uploaded: /proc/none/main cannot be used"),
        ("ftp://host/main", "not a folder or an address like s3://BUCKET/FOLDER"),
    ],
)
def test_an_address_that_cannot_be_used_is_a_sentence(
    command: Command, home: Path, url: str, sentence: str
) -> None:
    ran = command("publish", "--to", url)
    assert (ran.code, sentence in ran.err, "Traceback" in ran.text) == (2, True, False), ran.text
