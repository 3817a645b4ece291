"""Uploads what a home has published, for readers elsewhere: the DuckDB file as one object, and the
home's status file beside it.

fsspec talks to object storage and takes credentials and endpoints from the environment, as the
storage's own tools do. An object appears there complete or not at all; in a folder, a complete file
is moved into place. Not here: publishing (`warehouse.publish`)."""

import shutil
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import msgspec

from home.exits import Incomplete, WrongUse
from home.identity import identity_of
from home.progress import begin_stage
from home.settings import Settings
from warehouse.disk import (
    DAMAGED_JSON,
    Workspace,
    move_into_place,
    open_scratch,
    published_path,
)
from warehouse.status_file import NAME, HomeStatus, decode, read_status


def upload_published(settings: Settings, url: str) -> str:
    """Upload the published file and the status file into the folder `url`; returns the file's
    address. Raises WrongUse, also when another home's files are there, and Incomplete."""
    home_id = identity_of(settings.home).home_id
    status = msgspec.structs.replace(read_status(settings.home) or HomeStatus(), home_id=home_id)
    with (
        begin_stage("upload"),
        _explain_errors(url),
        open_scratch(settings.home, "upload") as workspace,
    ):
        files, folder = _open_storage(url)
        _check_folder(files, folder, url, home_id)
        noted = workspace.place_file(NAME)
        noted.write_bytes(msgspec.json.encode(status))
        for source in (published_path(settings.home), noted):
            _put_file(files, source, f"{folder}/{source.name}")
    return f"{url.rstrip('/')}/{published_path(settings.home).name}"


def _open_storage(url: str) -> tuple[Any, str]:
    """The storage, and the folder in it."""
    import fsspec  # slow to import

    if "://" not in url:
        url = str(Path(url).expanduser().absolute())
    files, folder = fsspec.core.url_to_fs(url, use_listings_cache=False)
    return files, folder.rstrip("/")


def _check_folder(files: Any, folder: str, url: str, home_id: str) -> None:
    """Raises WrongUse when another home has uploaded there."""
    with suppress(FileNotFoundError):
        try:
            uploader_id = decode(files.cat_file(f"{folder}/{NAME}")).home_id
        except DAMAGED_JSON:
            uploader_id = "unknown"
        if uploader_id not in ("", home_id):
            raise WrongUse(
                f"{url} has the published copy of another home: upload each home to its own folder"
            )


def _put_file(files: Any, source: Path, path: str) -> None:
    if "file" not in files.protocol:
        files.put_file(str(source), path)
        return
    target = Path(path)
    with closing(Workspace(target.parent / ".uploading")) as workspace:
        workspace.sweep_dead()
        copied = workspace.place_file(target.name)
        shutil.copyfile(source, copied)
        copied.chmod(0o600)
        move_into_place(copied, target)


@contextmanager
def _explain_errors(url: str) -> Iterator[None]:
    """Every storage has its own errors; they become WrongUse or Incomplete."""
    try:
        yield
    except (WrongUse, KeyboardInterrupt):
        raise
    except Exception as error:
        reason = " ".join(str(error).split())[:200] or type(error).__name__
        is_wrong = isinstance(
            error, ImportError | FileNotFoundError | PermissionError | NotADirectoryError
        )
        raise (WrongUse if is_wrong else Incomplete)(
            f"published, but not uploaded: {url} cannot be used ({reason})"
        ) from error
