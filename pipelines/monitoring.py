"""The state of every account for monitoring, from the status files of the homes on this machine. It
locks nothing and sends no request."""

import datetime as dt
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from home.account_files import declared_accounts
from home.freshness import describe_standstill
from home.settings import SANDBOX_ACCOUNT, Settings
from warehouse.bookkeeping import Run
from warehouse.status_file import AccountStatus, HomeStatus, read_status


class Shard(NamedTuple):
    """`accounts` are all configured ones, also those never read."""

    accounts: list[AccountStatus]
    run: Run | None
    is_here: bool


def read_shards(settings: Settings) -> dict[str, Shard]:
    """Name → shard; without shards one with an empty name."""
    names = _account_names(settings)
    return {
        shard: _make_shard(read_status(home), names[shard])
        for shard, home in settings.homes.items()
    }


def _account_names(settings: Settings) -> defaultdict[str, list[str]]:
    """Shard → the configured accounts."""
    found = defaultdict[str, list[str]](list)
    for account in declared_accounts(settings.folder / "accounts.toml"):
        found[account.shard or ""].append(account.name)
    if not found:
        found[""] = [connection.account for connection in settings.accounts] or [SANDBOX_ACCOUNT]
    return found


def _make_shard(status: HomeStatus | None, names: Iterable[str]) -> Shard:
    known = status or HomeStatus()
    by_name = {account.account: account for account in known.accounts}
    accounts = [by_name.get(name, AccountStatus(name)) for name in names]
    return Shard(accounts, known.run, is_here=status is not None)


def find_silent(
    settings: Settings, shard: Shard, now: dt.datetime, unread: Mapping[str, dt.datetime] = {}
) -> dict[str, str]:
    """Account → how long no part of it was read completely, if that is too long. `unread`: since
    when an account that was never read is known; without it, it is late."""
    late = {}
    for account in shard.accounts:
        read_at = account.read_at or unread.get(account.account)
        reason = "it was never read"
        if read_at:
            reason = describe_standstill(read_at, now, settings.alert_after)
        if reason:
            late[account.account] = reason
    return late
