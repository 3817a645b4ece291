"""`publish --to` with object storage that speaks S3."""

import json
from pathlib import Path

import fsspec
import pytest

from home.failures import explain_error
from home.settings import Settings
from marketing_sync.uploading import upload_published
from warehouse.disk import make_folder
from warehouse.publish import published_path

pytestmark = pytest.mark.services


def test_a_bucket_has_the_published_file_and_its_status(bucket: str, tmp_path: Path) -> None:
    home = tmp_path / "home"
    path = published_path(home)
    make_folder(path.parent)
    for content in (b"first", b"second"):
        path.write_bytes(content)
        assert upload_published(Settings(home), bucket) == f"{bucket}/marketing.duckdb"
    files = fsspec.filesystem("s3", skip_instance_cache=True)
    assert files.cat_file(f"{bucket}/marketing.duckdb") == b"second"
    assert "accounts" in json.loads(files.cat_file(f"{bucket}/status.json"))
    with pytest.raises(Exception, match="cannot be used") as raised:
        upload_published(Settings(home), "s3://nobody-has-this")
    assert explain_error(raised.value)[1] == 2
