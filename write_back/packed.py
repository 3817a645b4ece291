"""Many values in little memory: what a plan holds of a million rows."""

import heapq
from collections.abc import Iterator, Sequence
from typing import Any, Protocol, TypeVar

import msgspec
import pyarrow as pa

#: Values that are unpacked together.
_TOGETHER = 500
_zstd = pa.Codec("zstd")
_encode = msgspec.msgpack.Encoder(enc_hook=str).encode  # a kind of push is a text, too


class _OfRows(Protocol):
    @property
    def rows(self) -> tuple[int, ...]: ...


T = TypeVar("T", bound=_OfRows)


class Packed(Sequence[T]):
    """Values in order of their rows, which are unpacked as they are looked at. They are added in batches,
    each in order of its rows."""

    def __init__(self, kind: type[T]) -> None:
        self._decode = msgspec.msgpack.Decoder(list[kind]).decode  # type: ignore[valid-type]
        self._batches: list[list[tuple[int, bytes]]] = []
        self._count = 0

    def add(self, batch: Sequence[T]) -> None:
        parts = (_encode(batch[start : start + _TOGETHER]) for start in range(0, len(batch), _TOGETHER))
        self._batches.append([(len(part), _zstd.compress(part, asbytes=True)) for part in parts])
        self._count += len(batch)

    def _unpacked(self, batch: list[tuple[int, bytes]]) -> Iterator[T]:
        for size, part in batch:
            yield from self._decode(_zstd.decompress(part, size))

    def __iter__(self) -> Iterator[T]:
        return heapq.merge(*map(self._unpacked, self._batches), key=lambda value: value.rows)

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, place: Any) -> Any:
        return list(self)[place]
