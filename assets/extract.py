"""The one decorator: it turns a short function that says what is fetched into an asset that fills tables.

Belongs here: what a source asset is. Not here: what its function may use (`fetch`), who runs it (`prefetch`), and how it
looks in Dagster (`materialize`); the assets themselves are in one file per area.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from assets.fetch import Batches, Fetcher
from warehouse.tables import Table

FetchFunction = Callable[[Fetcher], Batches]


@dataclass(frozen=True, slots=True)
class SourceAsset:
    """What is fetched (`function`), for which tables, and which assets must be in the warehouse first (`after`).

    `informed_by`: assets whose tables say for whom a request is worth it. They are waited for when the same run reads them, and
    nothing is lost without them.
    """

    name: str
    tables: tuple[Table, ...]
    function: FetchFunction
    after: tuple[SourceAsset, ...] = ()
    informed_by: tuple[SourceAsset, ...] = ()
    is_daily: bool = False  # partitioned by the day that the data is about
    doc: str = ""

    def __hash__(self) -> int:
        return hash(self.name)


#: Every source asset by name, in the order of declaration.
SOURCE_ASSETS: dict[str, SourceAsset] = {}


def source_asset(
    *tables: Table, after: Sequence[SourceAsset] = (), informed_by: Sequence[SourceAsset] = (), is_daily: bool = False
) -> Callable[[FetchFunction], SourceAsset]:
    """Declare an asset: its function yields the batches it fetched; archive, load, coverage and errors are added around it."""

    def declare(function: FetchFunction) -> SourceAsset:
        doc = (function.__doc__ or "").strip()
        asset = SourceAsset(function.__name__, tables, function, tuple(after), tuple(informed_by), is_daily, doc)
        SOURCE_ASSETS[asset.name] = asset
        return asset

    return declare
