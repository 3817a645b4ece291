"""`marketing-sync lake`: what the lake holds of every shard, and a DuckDB file of views of all. Not here: filling it (`publish`)."""

import datetime as dt
from pathlib import Path

from rich.console import Console

from marketing_api.clock import utc_now
from pipelines import exits
from pipelines.commands import Arguments, command
from pipelines.commands.status import grid
from pipelines.freshness import ago
from pipelines.options import Option
from pipelines.publishing import lake_storage
from pipelines.settings import Settings
from warehouse.lake import Manifest, manifests, problems, views, write_views
from warehouse.storage import shown


@command(
    Option("to", "write a DuckDB file of views over all shards, in place of an earlier one", str, Path, metavar="FILE"),
    Option("sql", "print the statements that make these views, and nothing else"),
    is_for_all_shards=True,
)
def lake(arguments: Arguments, settings: Settings) -> int:
    """What it holds, by shard. Exit code 1 when something is the matter with it."""
    storage, now = lake_storage(settings), utc_now()
    by_shard = dict.fromkeys(settings.shards) | manifests(storage)
    found = [each for each in by_shard.values() if each]
    if not by_shard:
        print(f"{shown(storage.url)} is empty: `marketing-sync publish` exports to it, and so does every sync")
        return exits.DONE
    if arguments.sql:
        print(*views(storage, found), sep=";\n", end=";\n")
        return exits.DONE
    columns = "shard, version, published, personal data, >tables, >rows, >MB"
    Console(highlight=False).print(grid(shown(storage.url), columns, (_cells(each, now) for each in found)))
    wrong = list(problems(by_shard, now, storage.names("shards")))
    print(*wrong, sep="\n", end="\n" if wrong else "")
    if arguments.to:
        write_views(arguments.to, storage, found)
        extension = "; where it is opened, `install httpfs` has to be run once" if "://" in storage.address("") else ""
        print(f"{arguments.to}: views over {len(found)} shards as of now{extension}")
    return exits.INCOMPLETE if wrong else exits.DONE


def _cells(each: Manifest, now: dt.datetime) -> tuple[str, ...]:
    counts = f"{len(each.tables)}", f"{sum(one.rows for one in each.tables):,}", f"{sum(each.files.values()) / 1e6:,.1f}"
    return each.shard, each.version, ago(each.published.published_at, now), str(each.published.personal_data), *counts
