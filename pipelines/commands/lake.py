"""Show what is in the lake of all shards; write a DuckDB file of views over it."""

import datetime as dt
from pathlib import Path

from rich.console import Console

from home import exits
from home.freshness import ago
from home.options import Option
from home.settings import Settings
from home.texts import grid
from marketing_api.clock import utc_now
from pipelines.commands import Arguments, command
from pipelines.publishing import lake_storage
from warehouse.lake import Manifest, manifests, problems, views, write_views
from warehouse.storage import shown


@command(
    Option(
        "to",
        "write a DuckDB file of views over all shards, in place of an earlier one",
        str,
        Path,
        metavar="FILE",
    ),
    Option("sql", "print the statements that make these views, and nothing else"),
    is_for_all_shards=True,
)
def lake(arguments: Arguments, settings: Settings) -> int:
    """Lists what it holds, by shard. Exit code 1 when there is a problem with it."""
    storage, now = lake_storage(settings), utc_now()
    by_shard = dict.fromkeys(settings.shards) | manifests(storage)
    found = [each for each in by_shard.values() if each]
    if not by_shard:
        print(
            f"{shown(storage.url)} is empty: every whole `marketing-sync sync` exports to it, and so does "
            "`publish`"
        )
        return exits.DONE
    if arguments.sql:
        print(*views(storage, found), sep=";\n", end=";\n")
        return exits.DONE
    columns = "shard, version, published, personal data, >tables, >rows, >MB"
    cells = (_lake_cells(each, now) for each in found)
    Console(highlight=False).print(grid(shown(storage.url), columns, cells))
    wrong = list(problems(by_shard, now, storage.names("shards")))
    for line in wrong:
        print(line)
    if arguments.to:
        write_views(arguments.to, storage, found)
        is_remote = "://" in storage.address("")
        extension = "; where it is opened, `install httpfs` has to be run once" if is_remote else ""
        print(f"{arguments.to}: views over {len(found)} shards as of now{extension}")
    return exits.INCOMPLETE if wrong else exits.DONE


def _lake_cells(each: Manifest, now: dt.datetime) -> tuple[str, ...]:
    published = each.published
    return (
        each.shard,
        each.version,
        ago(published.published_at, now),
        str(published.personal_data),
        f"{len(each.tables)}",
        f"{sum(one.rows for one in each.tables):,}",
        f"{sum(each.files.values()) / 1e6:,.1f}",
    )
