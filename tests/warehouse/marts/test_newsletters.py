"""A year of a weekly newsletter whose subject never changes, first read when all of it is sent: which message
is of which campaign is known, as its key says it."""

import datetime as dt
import json
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

from tests.warehouse.marts.rows import Row, together, write
from tests.warehouse.selected import selected
from warehouse.models import build_models

_WEEKS = 52
_ASKED = dt.datetime(2026, 3, 20, 2, 30, tzinfo=dt.UTC)
_SUBJECT = "Weekly digest"


def _row(account: str, **values: object) -> Row:
    return {"account": account, "_first_seen_at": _ASKED, "_changed_at": _ASKED, **values}


def _sent_at(week: int) -> dt.datetime:
    return dt.datetime(2025, 3, 10, 9, 0, tzinfo=dt.UTC) + dt.timedelta(weeks=week)


def _newsletter(account: str, early: tuple[int, ...] = ()) -> dict[str, list[Row]]:
    """Every third goes to other contacts, every fifth over three days, and half of the contacts joined within
    the year; each is made two hours before it is sent, those of `early` weeks nine days before."""
    campaigns, events = [], []
    for week in range(_WEEKS):
        made = dt.timedelta(days=9) if week in early else dt.timedelta(hours=2)
        campaign = {"campaign_id": week, "type": "standard", "status": "sent", "subject": _SUBJECT}
        campaigns.append(_row(account, **campaign, created_at=_sent_at(week) - made))
        for contact_id in range(40):
            is_there = contact_id % 2 == 0 or week >= contact_id
            if is_there and (contact_id % 3 == 0) == (week % 3 == 0):
                later = dt.timedelta(minutes=contact_id, days=contact_id % 3 if week % 5 == 0 else 0)
                key = f"{week}-{contact_id}"
                events.append(_sent(account, contact_id, key, _sent_at(week) + later))
    automation = {"campaign_id": 99, "type": "automated", "status": "automation", "subject": _SUBJECT}
    campaigns.append(_row(account, **automation, created_at=_sent_at(0)))
    read = {"account": account, "table_name": "business", "scope": "all"}
    read |= {"as_of": _ASKED, "is_complete": True}
    return {"campaigns": campaigns, "timeline_events": events, "sync.coverage": [read]}


def _sent(account: str, contact_id: int, key: str, at: dt.datetime) -> Row:
    told = {"key": "email-campaign-sent", "snippet": _SUBJECT, "occurred_at": at, "details": json.dumps([])}
    return _row(account, contact_id=contact_id, event_key=key, **told)


@pytest.fixture(scope="module")
def matched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[duckdb.DuckDBPyConnection]:
    path: Path = tmp_path_factory.mktemp("newsletters") / "warehouse.duckdb"
    write(path, together([_newsletter("weekly"), _newsletter("early", early=(10, 31))]))
    assert not build_models(path, select=selected("+campaign_performance", "stg_contacts")).failure_summary
    with duckdb.connect(str(path), read_only=True) as connection:
        yield connection


def _told(matched: duckdb.DuckDBPyConnection, account: str) -> list[tuple[int, int | None]]:
    """(week, campaign) of each message."""
    sql = "select split_part(message_key, '-', 1)::int, campaign_id from marts.contact_campaign where account = ?"
    return matched.execute(sql, [account]).fetchall()


def test_every_message_is_matched_with_its_campaign(matched: duckdb.DuckDBPyConnection) -> None:
    told = _told(matched, "weekly")
    assert len(told) > 900
    assert {(week, campaign_id) for week, campaign_id in told} == {(week, week) for week in range(_WEEKS)}


def test_a_copy_made_before_its_original_was_sent_leaves_these_two_open(
    matched: duckdb.DuckDBPyConnection,
) -> None:
    told = _told(matched, "early")
    assert {week for week, campaign_id in told if campaign_id is None} == {9, 10, 30, 31}
    assert all(campaign_id in (week, None) for week, campaign_id in told)


def test_each_campaign_has_the_moment_of_its_sending(matched: duckdb.DuckDBPyConnection) -> None:
    sql = "select campaign_id, sent_at from marts.campaign_performance where type = 'standard' and account = 'weekly'"
    sent = dict(matched.execute(sql).fetchall())
    assert all(0 <= (at - _sent_at(week)).days < 2 for week, at in sent.items())
    assert len(sent) == _WEEKS
