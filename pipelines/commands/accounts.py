"""List the configured accounts: address, business, and when each was read last.

Nothing is requested: `check` does that."""

import datetime as dt
from collections.abc import Iterator

from rich.console import Console

from home import exits
from home.accounts import known_accounts
from home.folder import reading
from home.freshness import ago
from home.identity import identity_of
from home.options import JSON
from home.output import Account, Accounts, emit
from home.settings import Settings, load_settings
from home.texts import grid
from marketing_api.clock import utc_now
from marketing_api.redaction import plain
from pipelines.commands import Arguments, command
from warehouse.sql import rows

_READ = """
select account, max(as_of) filter (is_complete), count(*) filter (not is_complete)
from sync.coverage group by account"""


@command(JSON, is_for_all_shards=True)
def accounts(arguments: Arguments, settings: Settings) -> int:
    shards = [load_settings(settings.folder, shard=name) for name in settings.shards] or [settings]
    found = [account for each in shards for account in _accounts(each)]
    if arguments.json:
        emit(Accounts(found))
        return exits.DONE
    now = utc_now()
    cells = (_cells(each, now) for each in found)
    columns = "account, shard, address, business, read, >incomplete"
    Console(highlight=False, markup=False).print(grid("", columns, cells))
    return exits.DONE


def _cells(each: Account, now: dt.datetime) -> tuple[str, ...]:
    read = ago(each.read_at, now) if each.read_at else "never"
    return each.account, each.shard, each.url, each.business, read, f"{each.incomplete:,}"


def _accounts(settings: Settings) -> Iterator[Account]:
    known, read = identity_of(settings.home).accounts, {}
    if settings.warehouse_path.exists():
        with reading(settings) as connection:
            read = {name: rest for name, *rest in rows(connection, _READ)}
    for each in known_accounts(settings):
        name = each.account
        url = "the embedded sandbox" if settings.is_sandbox and not settings.sandbox_url else each.url
        business = plain(known[name].business_name or "") if name in known else ""
        yield Account(name, settings.shard, url, business, *read.get(name, (None, 0)))
