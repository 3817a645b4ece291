"""The same behaviour in a folder and in object storage."""

from __future__ import annotations

from pathlib import Path

import pytest

from warehouse.errors import StorageUnavailable
from warehouse.storage import Storage


@pytest.fixture(params=["folder", "bucket"])
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> Storage:
    return Storage(
        str(tmp_path / "place") if request.param == "folder" else request.getfixturevalue("bucket")
    )


def test_what_is_written_is_read(storage: Storage, tmp_path: Path) -> None:
    storage.write("a/one", b"1")
    storage.write("a/one", b"22")
    (tmp_path / "file").write_bytes(b"333")
    storage.upload(tmp_path / "file", "a/b/two")
    storage.download("a/b/two", tmp_path / "copy")
    assert storage.read("a/one") == b"22"
    assert (tmp_path / "copy").read_bytes() == b"333"
    assert storage.names() == storage.names("a") == {"a/one": 2, "a/b/two": 3}


def test_what_is_deleted_is_gone(storage: Storage) -> None:
    for name in ("one", "two"):
        storage.write(name, b"1")
    storage.delete(["one"])
    storage.delete([])
    assert list(storage.names()) == ["two"]
    with pytest.raises(FileNotFoundError):
        storage.read("one")


def test_an_empty_place_has_no_files(storage: Storage) -> None:
    assert storage.names() == {}


def test_a_bucket_that_is_not_there_is_said(bucket: str) -> None:
    with pytest.raises(StorageUnavailable, match=r"s3://nobody-has-this cannot be used"):
        Storage("s3://nobody-has-this").write("x", b"")
