"""A storage that notes what is sent, and whose network goes away."""

from __future__ import annotations

from pathlib import Path

from warehouse.errors import StorageUnavailable
from warehouse.storage import Storage


class CountingStorage(Storage):
    """Notes what is sent; fails behind the first `most` files."""

    def __init__(self, url: str, most: int = 10**9) -> None:
        super().__init__(url)
        self.sent: list[str] = []
        self._most = most

    def upload(self, source: Path, name: str) -> None:
        if len(self.sent) == self._most:
            raise StorageUnavailable("the network is gone")
        super().upload(source, name)
        self.sent.append(name)
