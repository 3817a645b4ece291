"""Thirty nights of a sandbox that lives on: the marts tell each day as the sandbox says it was.

Goals: no day on which messages sent, opened, bounced, clicks, unsubscriptions, and contacts that came and
went differ from what happened in the sandbox; no mart that differs from one made anew after all these nights.
Two nights are left out on purpose: their days stand together on the night after them."""

from __future__ import annotations

import datetime as dt
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import duckdb

from marketing_api.sandbox.app import App
from marketing_api.sandbox.world import World
from tests.dialects.server import Options, spawn
from tests.marketing_api.sandbox.truth import days_of, mails_of
from tests.simulators.dated_nights import DatedNights
from warehouse.models import build_models

ZONE = ZoneInfo("America/New_York")
#: Half a minute before midnight of the account: a night sees its whole day.
START = dt.datetime(2026, 2, 10, 23, 59, 30, tzinfo=ZONE)
_LEFT_OUT = (12, 13)
_MOST_OPENINGS = 0.95
#: The sandbox's word → what `marts.campaign_daily` calls it.
_CHANGES = {name: f"{name}_change" for name in ("sent", "opened", "bounced", "unsubscribed")} | {
    "clicks": "click_change"
}

Day = dict[str, Any]


@dataclass(frozen=True)
class Lived:
    """The warehouse after so many nights; the sandbox's days and totals; the days on which it was asked."""

    path: Path
    days: list[Day]
    state: dict[str, Any]
    asked: list[dt.date]


def lived(home: Path, contacts: int, nights: int) -> Lived:
    """Let the sandbox live and read it. The models of what changes over time are built every night, the
    others at the end."""
    now = f"{START.astimezone(dt.UTC):%Y-%m-%dT%H:%M:%S}"
    options = (
        "--contacts",
        str(contacts),
        "--rate-limit",
        "0",
        "--now",
        now,
        "--timezone",
        str(ZONE),
        "--show-timezone",
        "on",
    )
    with spawn(*options) as url, DatedNights(home, url, ZONE) as reading:
        asked = []
        for number in range(nights):
            if number:
                reading.control("advance", days=_day_length(number))
            if number not in _LEFT_OUT:
                asked.append(reading.night().astimezone(ZONE).date())
                _build(reading.path, "history_contacts")
            if number == nights // 2:
                reading.timelines()
                _build(reading.path)  # what is kept of this must not show in the end
        reading.timelines()
        _build(reading.path)
        state = reading.control("state")
    account = _account(contacts, nights)
    return Lived(
        reading.path,
        list(days_of(account, nights)),
        state | {"mails": mails_of(account, account.now())},
        asked,
    )


def _account(contacts: int, nights: int) -> World:
    """The same account in this process, after as many nights: what its seed and its clock determine."""
    options = Options(contacts=contacts, now=int(START.timestamp()), timezone=str(ZONE))
    account = App(options).world
    for number in range(1, nights):
        account.advance(_day_length(number))
    return account


def _day_length(number: int) -> float:
    """Of the day before this night, in days of 24 hours: clocks are put forward in March."""
    return (_instant(number) - _instant(number - 1)) / dt.timedelta(days=1)


def _instant(number: int) -> dt.datetime:
    return (START + dt.timedelta(days=number)).astimezone(dt.UTC)


def _build(path: Path, *select: str, full: bool = False) -> None:
    report = build_models(path, select=select, full=full)
    if report.problem:
        raise SystemExit(f"the models do not build: {report.problem}")


def spans(days: list[Day], asked: list[dt.date]) -> Iterator[tuple[dt.date, list[Day]]]:
    """Each day of asking but the first, with the days that lie between it and the one before."""
    for before, day in pairwise(asked):
        yield day, [one for one in days if before < dt.date.fromisoformat(one["day"]) <= day]


def differences(found: Lived) -> Iterator[str]:
    """In words, what the marts say otherwise than the sandbox."""
    with duckdb.connect(str(found.path), read_only=True) as connection:
        connection.execute(f"set timezone = '{ZONE}'")
        yield from _changes(connection, found.days, found.asked)
        yield from _totals(connection, found.state["mails"])
        yield from _sendings(connection, found.days)
        yield from _openings(connection, found.days)
        yield from _lists(connection, found)


def _changes(connection: duckdb.DuckDBPyConnection, days: list[Day], asked: list[dt.date]) -> Iterator[str]:
    sums = ", ".join(f"sum({column})" for column in _CHANGES.values())
    sql = (
        f"select observed_on, max(days_covered), {sums} from marts.campaign_daily group by observed_on "
        "order by observed_on"
    )
    found = {day: (covered, values) for day, covered, *values in connection.execute(sql).fetchall()}
    if sorted(found) != asked:
        yield f"campaign_daily has the days {sorted(found)}, asked were {asked}"
        return
    for day, span in spans(days, asked):
        covered, values = found[day]
        if covered != len(span):
            yield f"{day}: covers {covered} days, not {len(span)}"
        for name, value in zip(_CHANGES, values, strict=True):
            if value != (truth := sum(one[name] for one in span)):
                yield f"{day}: {name} {value}, not {truth}"


def kept(path: Path) -> Iterator[str]:
    """Marts that differ when they are made anew, with nothing kept from earlier nights."""
    with duckdb.connect(str(path), read_only=True) as connection:
        before = _marts(connection)
    _build(path, full=True)
    with duckdb.connect(str(path), read_only=True) as connection:
        after = _marts(connection)
    yield from (f"{name} is another when made anew" for name in before if before[name] != after[name])


def _marts(connection: duckdb.DuckDBPyConnection) -> dict[str, list[tuple[Any, ...]]]:
    names = connection.execute(
        "select table_name from duckdb_tables() where schema_name = 'marts'"
    ).fetchall()
    return {name: connection.execute(f"from marts.{name} order by all").fetchall() for (name,) in names}


def _totals(connection: duckdb.DuckDBPyConnection, mails: dict[str, int]) -> Iterator[str]:
    columns = {
        "sent": "sent_count",
        "opened": "opened_count",
        "bounced": "bounced_count",
        "unsubscribed": "unsubscribed_count",
    }
    columns["clicks"] = "click_count"
    row = connection.execute(
        f"select {', '.join(f'sum({column})' for column in columns.values())} from marts.campaign_performance"
    ).fetchone()
    for name, value in zip(columns, row or (), strict=True):
        if value != mails[name]:
            yield f"campaign_performance: {name} {value}, not {mails[name]}"


def _sendings(connection: duckdb.DuckDBPyConnection, days: list[Day]) -> Iterator[str]:
    """The days on which campaigns went out follow from timelines."""
    rows = connection.execute(
        "select sent_at::date, campaign_id from marts.campaign_performance where type = 'standard'"
    ).fetchall()
    for one in days:
        sent = sorted(campaign_id for day, campaign_id in rows if str(day) == one["day"])
        if sent != sorted(one["campaigns_sent"]):
            yield f"{one['day']}: campaigns sent {sent}, not {one['campaigns_sent']}"


def _openings(connection: duckdb.DuckDBPyConnection, days: list[Day]) -> Iterator[str]:
    """Timelines were read once, at the end: contacts that are gone by then lack, and nothing else."""
    sql = (
        "select opened_at::date, count(*) from marts.contact_campaign where opened_at is not null "
        "group by all"
    )
    opened = {str(day): count for day, count in connection.execute(sql).fetchall()}
    told, true = sum(opened.get(one["day"], 0) for one in days), sum(one["opened"] for one in days)
    yield from (
        f"{one['day']}: {opened[one['day']]} openings, not {one['opened']}"
        for one in days
        if opened.get(one["day"], 0) > one["opened"]
    )
    if told < _MOST_OPENINGS * true:
        yield f"timelines tell {told} openings of {true}"


def _lists(connection: duckdb.DuckDBPyConnection, found: Lived) -> Iterator[str]:
    """Contacts came and left on the night that saw it."""
    sql = (
        "select day_on, sum(joined_count), sum(left_count), sum(size) from marts.list_growth_daily "
        "group by day_on"
    )
    growth = {day: values for day, *values in connection.execute(sql).fetchall()}
    for day, span in spans(found.days, found.asked):
        for name, word, number in (("joined", "registered", 0), ("left", "deleted", 1)):
            if growth[day][number] != (truth := sum(one[word] for one in span)):
                yield f"{day}: {growth[day][number]} {name}, not {truth}"
    if growth[found.asked[-1]][2] != found.state["contacts"]:
        yield f"lists have {growth[found.asked[-1]][2]} members, not {found.state['contacts']}"


def attack(minutes: float, seed: int) -> str:
    """The same thirty-one nights always (there is no chance in them), whatever time that takes."""
    with tempfile.TemporaryDirectory() as folder:
        night = lived(Path(folder), contacts=600, nights=31)
        found = [*differences(night), *kept(night.path)]
    assert not found, "\n".join(found)
    return f"{len(night.asked)} nights of {len(night.days)} days: no difference"
