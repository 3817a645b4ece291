"""Show what is in the lake of all shards; write a DuckDB file of views over it."""

import datetime as dt
import sys
from pathlib import Path

from rich.console import Console

from home import exits
from home.formatting import plural
from home.freshness import ago
from home.options import Option
from home.settings import Settings
from home.texts import grid
from marketing_api.clock import utc_now
from pipelines.commands import Arguments, command
from pipelines.publishing import lake_storage
from warehouse.lake import Manifest, manifests, missing, problems, views, write_views
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
    found = list(filter(None, by_shard.values()))
    if not by_shard:
        print(
            f"{shown(storage.url)} is empty: every whole `marketing-sync sync` exports to it, and so does "
            "`publish`"
        )
        return exits.DONE
    lacking = missing(storage, found)
    whole = [each for each in found if not lacking[each.shard]]
    wrong = list(problems(by_shard, now, lacking))
    if arguments.sql:
        print(*views(storage, whole), sep=";\n", end=";\n")
    else:
        columns = "shard, version, published, personal data, >tables, >rows, >MB"
        cells = (_lake_cells(each, now) for each in found)
        Console(highlight=False).print(grid(shown(storage.url), columns, cells))
    out = sys.stderr if arguments.sql else None
    for line in wrong:
        print(line, file=out)
    if arguments.to:
        write_views(arguments.to, storage, whole)
        is_remote = "://" in storage.address("")
        extension = "; where it is opened, `install httpfs` has to be run once" if is_remote else ""
        over = plural(len(whole), "shard")
        print(f"{arguments.to}: views over {over} as of now{extension}", file=out)
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
