"""What Prometheus scrapes: `/metrics` of the UI, and `marketing-sync status --prometheus`. Names of accounts
and shards are labels; nothing of people or keys is in it."""

import datetime as dt
import shutil
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from prometheus_client import CollectorRegistry, Gauge, Info, generate_latest

from home.door import outbox_of
from home.freshness import is_to_come
from home.settings import Settings
from marketing_api import __version__
from marketing_api.clock import utc_now
from pipelines.monitoring import Shard, read_shards
from warehouse.retention import measure_sizes
from write_back.outbox.outbox import open_outbox
from write_back.outbox.store import OutboxError

_ACCOUNT, _SHARD = ("shard", "account"), ("shard",)
#: Fields of `AccountStatus`. No counters: requests of past years are let go of.
_OF_ACCOUNT = {
    "contacts": "Its contacts",
    "rejected_records": "Entries that could not be read",
    "incomplete_parts": "Lists, days or contacts that were not read whole",
    "requests_last_night": "Requests in the 24 hours before the last run ended",
    "rate_limited_last_night": "Of them, those that the rate limit refused",
}
#: Name → its labels, and what it is.
_GAUGES = {
    **{f"account_{field}": (_ACCOUNT, text) for field, text in _OF_ACCOUNT.items()},
    "account_read_timestamp_seconds": (
        _ACCOUNT,
        "When a part of it was last read completely; 0: never, or unknown",
    ),
    "push_open_requests": (_ACCOUNT, "Requests of pushes that are still to be sent or looked up"),
    "run_timestamp_seconds": (_SHARD, "When the last run that read ended"),
    "run_seconds": (_SHARD, "How long it took"),
    "run_outcome": ((*_SHARD, "outcome"), "1: what came of it, done, partial or failed"),
    "home_bytes": (_SHARD, "Bytes of the home's files"),
    "home_free_bytes": (_SHARD, "Bytes that are free on its disk"),
}
#: Name, labels behind the shard, value.
_Sample = tuple[str, tuple[str, ...], float]


def render_metrics(settings: Settings) -> str:
    """In Prometheus' text format."""
    registry = CollectorRegistry()
    Info("marketing_sync", "The program", registry=registry).info({"version": __version__})
    gauges = {
        name: Gauge(f"marketing_sync_{name}", text, labels, registry=registry)
        for name, (labels, text) in _GAUGES.items()
    }
    now = utc_now()
    for name, shard in read_shards(settings).items():
        for metric, labels, value in (*_read_shard(shard, now), *_of_home(settings.homes[name])):
            gauges[metric].labels(name, *labels).set(value)
    return generate_latest(registry).decode()


def _read_shard(shard: Shard, now: dt.datetime) -> Iterator[_Sample]:
    for each in shard.accounts:
        label, read_at = (each.account,), each.read_at
        is_known = read_at is not None and not is_to_come(read_at, now)
        yield "account_read_timestamp_seconds", label, read_at.timestamp() if read_at and is_known else 0
        for field in _OF_ACCOUNT if each.read_at else ():
            yield f"account_{field}", label, getattr(each, field)
    if (run := shard.run) and run.ended_at:
        yield "run_timestamp_seconds", (), run.ended_at.timestamp()
        yield "run_seconds", (), (run.ended_at - run.started_at).total_seconds()
        yield "run_outcome", (str(run.outcome),), 1


def _of_home(home: Path) -> Iterator[_Sample]:
    if not home.is_dir():
        return
    yield "home_bytes", (), sum(measure_sizes(home).values())
    yield "home_free_bytes", (), shutil.disk_usage(home).free
    if outbox_of(home).exists():
        # `push status` says what is wrong with it
        with suppress(OutboxError), open_outbox(home) as outbox:
            for account, count in outbox.open_counts():
                yield "push_open_requests", (account,), count
