"""A folder of this machine or of object storage, by its address: where the lake and the backup are kept.

Belongs here: whole files in and out, and what goes wrong on the way as one sentence. Not here: what is in the
files. fsspec speaks with the storage; it takes credentials and endpoints from the environment, as that
storage's own tools do, so none is a setting of ours."""

import hashlib
import os
import re
import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import duckdb
import fsspec

from warehouse.errors import StorageMisconfigured, StorageUnavailable

#: Packages that fsspec needs for an address that begins so.
_EXTRAS = {
    "s3": "'marketing-sync[s3]'",
    "gs": "gcsfs",
    "gcs": "gcsfs",
    "az": "adlfs",
    "abfs": "adlfs",
    "abfss": "adlfs",
}


class Storage:
    """Whole files below one address. Names are relative, with `/`. Every method raises StorageUnavailable."""

    def __init__(self, url: str) -> None:
        self.url = url
        with self.explained():
            options = {"auto_mkdir": True} if _is_local(url) else {"use_listings_cache": False}
            address = url if "://" in url else str(Path(url).expanduser().absolute())
            self._files: Any
            self._files, self._root = fsspec.core.url_to_fs(address, **options)

    def read(self, name: str) -> bytes:
        """Raises FileNotFoundError when it is not there."""
        with self.explained(FileNotFoundError):
            return bytes(self._files.cat_file(self._path(name)))

    def write(self, name: str, content: bytes) -> None:
        """Put it there in one step: others see the whole file, or the one before."""
        with self.explained(), self._placed(name) as path:
            self._files.pipe_file(path, content)

    def upload(self, source: Path, name: str) -> None:
        """The same for a file of this machine."""
        with self.explained(), self._placed(name) as path:
            self._files.put_file(str(source), path)

    def download(self, name: str, target: Path) -> None:
        """Raises FileNotFoundError when it is not there, or is no file of this place: a link out of it, a
        device."""
        with self.explained(FileNotFoundError):
            path = Path(self._path(name))
            root = Path(self._root).resolve()
            if _is_local(self.url) and not (path.is_file() and path.resolve().is_relative_to(root)):
                raise FileNotFoundError(name)
            self._files.get_file(self._path(name), str(target))

    def digest(self, name: str) -> str:
        """SHA-256 of what stands there. Raises FileNotFoundError."""
        with self.explained(FileNotFoundError), self._files.open(self._path(name), "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()

    def names(self, folder: str = "") -> dict[str, int]:
        """All files below the folder, with their bytes."""
        with self.explained(), suppress(FileNotFoundError):
            found = self._files.find(self._path(folder), detail=True)
            return {
                path.removeprefix(self._root).lstrip("/"): int(info["size"]) for path, info in found.items()
            }
        return {}

    def folders(self, folder: str) -> list[str]:
        """The names of those that are directly in the folder."""
        with self.explained(), suppress(FileNotFoundError, NotADirectoryError):
            found = self._files.ls(self._path(folder), detail=True)
            return sorted(Path(each["name"]).name for each in found if each["type"] == "directory")
        return []

    def address(self, name: str) -> str:
        """The file as other programs call it."""
        path = self._path(name)
        return path if _is_local(self.url) else str(self._files.unstrip_protocol(path))

    def register(self, connection: duckdb.DuckDBPyConnection) -> None:
        """Have DuckDB read addresses of this storage through it: DuckDB's own extension for that is not
        installed everywhere."""
        if not _is_local(self.url):
            connection.register_filesystem(self._files)

    def delete(self, names: Sequence[str]) -> None:
        with self.explained():
            if names:
                self._files.rm([self._path(name) for name in names])

    def _path(self, name: str) -> str:
        return f"{self._root.rstrip('/')}/{name}".rstrip("/")

    @contextmanager
    def _placed(self, name: str) -> Iterator[str]:
        """Object storage shows a file when it is whole; a folder would show half of it."""
        path = self._path(name)
        if not _is_local(self.url):
            yield path
            return
        unfinished = Path(f"{path}.{secrets.token_hex(4)}.part")
        unfinished.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        try:
            yield str(unfinished)
            unfinished.chmod(0o600)
            os.replace(unfinished, path)  # noqa: PTH105 - names of the storage are text
        finally:
            unfinished.unlink(missing_ok=True)

    @contextmanager
    def explained(self, *known: type[Exception]) -> Iterator[None]:
        try:
            yield
        except known:
            raise
        except (ImportError, ValueError) as problem:
            extra = _EXTRAS.get(self.url.partition("://")[0])
            advice = f"install {extra}" if extra and isinstance(problem, ImportError) else f"{problem}"
            raise StorageMisconfigured(f"{shown(self.url)} cannot be used: {advice}") from None
        except Exception as problem:  # each storage has errors of its own
            reason = " ".join(str(problem).split())[:200] or type(problem).__name__
            is_wrong = isinstance(problem, FileNotFoundError | PermissionError | NotADirectoryError)
            error = StorageMisconfigured if is_wrong else StorageUnavailable
            raise error(
                f"{shown(self.url)} cannot be used ({reason}): see that it is reachable and yours"
            ) from problem


def sha256(path: Path) -> str:
    """Of a file of this machine."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def shown(url: str) -> str:
    """The address without a password in it."""
    return re.sub(r"(?<=://)[^/@\s]*@", "", url)


def _is_local(url: str) -> bool:
    return "://" not in url or url.startswith("file://")
