"""Attribution, retention and lifecycle of an account of which it is known what happened, since it was made
so.

Ann clicked in One, a day later in Two, which led her to the menu; by an advertisement she came back and
booked, and redeemed her coupon the day after. Bob clicked the booking link of One, of whom nothing else is
told. Cat came and booked by herself. Dan came back after a silence."""

import datetime as dt
import json
from pathlib import Path
from typing import Any

import duckdb
import pytest

from tests.warehouse.marts.expected import row_of
from tests.warehouse.marts.rows import Row, write
from tests.warehouse.selected import selected
from warehouse.connection import open_database
from warehouse.models import ModelSettings, build_models

_MENU, _BOOK = "https://s.example/menu", "https://s.example/book"
#: The 19th and 21st there.
_ASKED, _LATER = (dt.datetime(2026, 3, day, 2, 30, tzinfo=dt.UTC) for day in (20, 22))
_MARTS = selected("+attribution", "+goal_conversions", "+cohort_retention", "+contact_lifecycle")
_SETTINGS = ModelSettings(attribution_hours="48,visit=24", timezone="America/New_York")


def _rows(*some: dict[str, Any]) -> list[Row]:
    return [{"account": "known", "_first_seen_at": _ASKED, "_changed_at": _ASKED, **row} for row in some]


def _at(text: str) -> dt.datetime:
    return dt.datetime.strptime(text, "%Y-%m-%d %H:%M").replace(tzinfo=dt.UTC)


def _sent(contact_id: int, subject: str, at: str, clicked: str = "-") -> Row:
    details = {"subject": subject, "open-date": clicked, "click-date": clicked}
    details["links-clicked"] = "0" if clicked == "-" else "1"
    told = json.dumps([{"key": key, "value": value} for key, value in details.items()])
    columns = "contact_id event_key key snippet occurred_at details"
    return row_of(columns, contact_id, subject, "email-campaign-sent", subject, _at(at), told)


def _visit(
    contact_id: int, key: str, link: str, at: str, source: str | None = None, medium: str | None = None
) -> Row:
    columns = "contact_id visit_key link visited_at utm_source utm_medium"
    return row_of(columns, contact_id, key, link, _at(at), source, medium)


ACCOUNT = {
    "sync.coverage": [{"account": "known", "table_name": "business", "scope": "all", "as_of": _ASKED, "is_complete": True}],
    "sync.contact_coverage": [{"account": "known", "contact_id": number, "timeline_asked_at": _ASKED} for number in (1, 3, 4)],
    "campaigns": _rows(
        *({"campaign_id": number, "type": "standard", "status": "sent", "subject": subject, "created_at": _at("2025-12-01 12:00")}
          for number, subject in enumerate(("One", "Two", "Zero"), 1))
    ),
    "campaign_clickers": _rows({"campaign_id": 1, "url": f"{_BOOK}?from=one", "email": "Bob@x.example", "click_count": 1}),
    "contacts": _rows(
        *({"list_id": 1, "contact_id": number, "email": f"{name}@x.example", "status": "active", "registered_at": _at(f"{day} 12:00")}
          for number, name, day in ((1, "ann", "2026-01-10"), (2, "bob", "2026-01-20"), (3, "cat", "2026-02-05"), (4, "dan", "2025-06-01")))
    ),
    "timeline_events": _rows(
        _sent(1, "One", "2026-03-09 14:00", "2026-03-10 08:00 AM"),
        _sent(1, "Two", "2026-03-11 11:00", "2026-03-11 08:00 AM"),
        _sent(4, "Zero", "2026-01-04 12:00"),
    ),
    "timeline_visits": _rows(
        _visit(1, "v1", _MENU, "2026-03-11 12:00", "newsletter", "email"),
        _visit(1, "v2", _BOOK, "2026-03-11 20:00", "Google", "cpc"),
        _visit(3, "v3", _BOOK, "2026-03-15 12:00"),
        _visit(4, "v4", _MENU, "2025-06-10 12:00"),
        _visit(4, "v5", _MENU, "2026-01-05 12:00"),
    ),
    "coupons": _rows({"coupon_id": 9, "email": "ann@x.example", "is_redeemed": True, "redeemed_on": dt.date(2026, 3, 12)}),
    "goals": _rows({"goal_id": 5, "name": "Booked", "value_type": "Fixed", "value": 50, "links": [_BOOK]}),
}  # fmt: skip


@pytest.fixture(scope="module")
def known(tmp_path_factory: pytest.TempPathFactory) -> duckdb.DuckDBPyConnection:
    """Built on two nights, between which Ann unsubscribed."""
    path: Path = tmp_path_factory.mktemp("known") / "warehouse.duckdb"
    write(path, ACCOUNT)
    assert not build_models(path, _SETTINGS, select=_MARTS).failure_summary
    with open_database(path) as connection:
        left = "update source.contacts set status = 'unsubscribed', _changed_at = ? where contact_id = 1"
        connection.execute(left, [_LATER])
        connection.execute("update sync.coverage set as_of = ?", [_LATER])
    assert not build_models(path, _SETTINGS, select=_MARTS).failure_summary
    return duckdb.connect(str(path), read_only=True)


def test_attribution_is_what_happened(known: duckdb.DuckDBPyConnection) -> None:
    columns = (
        "outcome, outcome_key, touch_key, campaign_id, source, is_landing, first_credit, last_credit, "
        "round(linear_credit, 3), value"
    )
    one, two = ("One", 1, "(click)", False), ("Two", 2, "(click)", False)
    landing, advertised = ("v1", None, "newsletter", True), ("v2", None, "google", False)
    none = (None, None, "(none)", False)
    sql = f"select {columns} from marts.attribution order by outcome, outcome_key, touch_number"
    assert known.execute(sql).fetchall() == [
        ("goal", "5/1", *one, 1, 0, 0.333, 50),
        ("goal", "5/1", *two, 0, 0, 0.333, 50),
        ("goal", "5/1", *landing, 0, 0, 0, 50),
        ("goal", "5/1", *advertised, 0, 1, 0.333, 50),
        ("goal", "5/2", "clickers", 1, "(click)", False, 1, 1, 1, 50),
        ("goal", "5/3", *none, 1, 1, 1, 50),
        ("redemption", "9", *one, 1, 0, 0.333, None),
        ("redemption", "9", *two, 0, 0, 0.333, None),
        ("redemption", "9", *landing, 0, 0, 0, None),
        ("redemption", "9", *advertised, 0, 1, 0.333, None),
        ("visit", "1/v1", *one, 1, 0, 0.5, None),
        ("visit", "1/v1", *two, 0, 1, 0.5, None),
        ("visit", "1/v2", *one, 1, 0, 0.5, None),
        ("visit", "1/v2", *two, 0, 1, 0.5, None),
        ("visit", "3/v3", *none, 1, 1, 1, None),
        ("visit", "4/v4", *none, 1, 1, 1, None),
        ("visit", "4/v5", *none, 1, 1, 1, None),
    ]


def test_only_clicks_of_unknown_times_are_counted_beside_outcomes(known: duckdb.DuckDBPyConnection) -> None:
    counts = "select outcome_key, untimed_click_count from marts.attribution"
    others = known.execute(f"{counts} where untimed_click_count is distinct from 0").fetchall()
    assert others == [("5/2", None)], "the time of Bob's outcome is unknown, and all other clicks have theirs"


def test_goals_are_counted_once_by_each_kind_of_credit(known: duckdb.DuckDBPyConnection) -> None:
    columns = (
        "credited_to, source, first_touch_count, last_touch_count, round(linear_touch_count, 3), "
        "round(linear_touch_value, 1)"
    )
    assert known.execute(f"select {columns} from marts.goal_conversions order by all").fetchall() == [
        ("(none)", "(none)", 1, 1, 1, 50),
        ("(none)", "google", 0, 1, 0.333, 16.7),
        ("1", "(click)", 2, 1, 1.333, 66.7),
        ("2", "(click)", 0, 0, 0.333, 16.7),
    ]


def test_retention_is_what_happened(known: duckdb.DuckDBPyConnection) -> None:
    columns = "registered_month::varchar, months_since, is_over, address_count, read_count"
    columns += ", responder_count, clicker_count from marts.cohort_retention"
    sql = f"select {columns} where registered_month >= date '2026-01-01' order by all"
    assert known.execute(sql).fetchall() == [
        ("2026-01-01", 0, True, 2, 1, 0, 0),
        ("2026-01-01", 1, True, 2, 1, 0, 0),
        ("2026-01-01", 2, False, 2, 1, 1, 1),
        ("2026-02-01", 0, True, 1, 1, 0, 0),
        ("2026-02-01", 1, False, 1, 1, 1, 0),
    ]


def test_who_was_lost_and_won_is_what_happened(known: duckdb.DuckDBPyConnection) -> None:
    columns = "split_part(email, '@', 1), transition, day_on::varchar, is_day_known, reaction"
    columns += ", days_since_active, days_at_risk, subject"
    sql = f"select {columns} from marts.contact_lifecycle order by email, transition_number"
    assert known.execute(sql).fetchall() == [
        ("ann", "activated", "2026-03-10", True, "click", None, None, "One"),
        ("ann", "unsubscribed", "2026-03-21", True, None, 10, None, "Two"),
        ("cat", "activated", "2026-03-15", True, "visit", None, None, None),
        ("dan", "activated", "2025-06-10", True, "visit", None, None, None),
        ("dan", "at risk", "2025-09-09", True, None, 91, 118, None),
        ("dan", "won back", "2026-01-05", True, "visit", 209, 118, "Zero"),
    ]
