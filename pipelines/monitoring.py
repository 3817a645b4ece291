"""What is known of every account, for monitoring: by the status files of the homes that are here.
Nothing is locked, and nothing is requested of the service."""

import datetime as dt
from collections import defaultdict
from collections.abc import Iterable
from typing import NamedTuple

from home.account_files import declared_accounts
from home.freshness import describe_standstill
from home.settings import SANDBOX_ACCOUNT, Settings
from warehouse.bookkeeping import Run
from warehouse.status_file import AccountStatus, HomeStatus, read_status


class Shard(NamedTuple):
    """`accounts` are all that there should be, those that were never read included."""

    accounts: list[AccountStatus]
    run: Run | None
    is_here: bool


def read_shards(settings: Settings) -> dict[str, Shard]:
    """By name; one without a name where there are none."""
    names = _account_names(settings)
    return {
        shard: _make_shard(read_status(home), names[shard])
        for shard, home in settings.homes.items()
    }


def _account_names(settings: Settings) -> defaultdict[str, list[str]]:
    """Shard → the accounts that there should be."""
    found = defaultdict[str, list[str]](list)
    for name, table in declared_accounts(settings.folder / "accounts.toml").items():
        found[table.get("shard", "")].append(name)
    if not found:
        found[""] = [each.account for each in settings.accounts] or [SANDBOX_ACCOUNT]
    return found


def _make_shard(status: HomeStatus | None, names: Iterable[str]) -> Shard:
    known = status or HomeStatus()
    read = {each.account: each for each in known.accounts}
    return Shard(
        [read.get(name, AccountStatus(name)) for name in names], known.run, status is not None
    )


def find_silent(
    settings: Settings, shard: Shard, now: dt.datetime, began: dt.datetime | None = None
) -> dict[str, str]:
    """Account → how long no part of it was read completely, where that is longer than it should be.
    `began`: an account that never was is given time from then on."""
    late = {}
    for each in shard.accounts:
        read_at = each.read_at or began
        words = (
            describe_standstill(read_at, now, settings.alert_after)
            if read_at
            else "it was never read"
        )
        if words:
            late[each.account] = words
    return late
