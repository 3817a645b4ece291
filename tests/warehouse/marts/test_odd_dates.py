"""One date that can't be right neither stretches nor moves any mart, and is counted."""

import datetime as dt
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest

from tests.conftest import Once
from tests.warehouse.marts import by_hand
from tests.warehouse.marts.rows import Row, together, write
from warehouse.models import build_models

#: Where the service gives dates of its own.
_COLUMNS = {
    "contacts": "registered_at",
    "timeline_events": "occurred_at",
    "timeline_visits": "visited_at",
    "timeline_automations": "triggered_at",
    "coupons": "redeemed_on",
    "campaigns": "created_at",
    "direct_reviews": "reviewed_at",
    "online_reviews": "reviewed_at",
    "sentiment_mentions": "reviewed_on",
    "review_stats": "period_on",
    "feedback_views": "period_on",
    "social_media_stats": "period_on",
    "social_links": "created_at",
    "social_posts": "scheduled_at",
}
#: Its dates may lie ahead.
_PLANNED = "social_posts"
_ODD = {"past": dt.datetime(1, 2, 1, tzinfo=dt.UTC), "ahead": dt.datetime(2031, 5, 1, tzinfo=dt.UTC)}
#: Newest moments over many rows.
_NEWEST = (
    ("contact_engagement", "last_active_at"),
    ("contact_engagement", "last_sent_at"),
    ("deliverability_by_domain", "last_opened_at"),
    ("reputation_overview", "last_review_at"),
)


def _account(name: str, table: str = "", odd: dt.datetime | None = None) -> dict[str, list[Row]]:
    """The account by hand under another name, with one date replaced."""
    rows = {key: [row | {"account": name} for row in some] for key, some in together(by_hand.PARTS).items()}
    read = {"account": name, "scope": "all", "as_of": by_hand.NOW, "is_complete": True}
    known = {row["table_name"] for row in rows["sync.coverage"]}
    rows["sync.coverage"] += [read | {"table_name": other} for other in _COLUMNS.keys() - known]
    if odd:
        column = _COLUMNS[table]
        row = next(row for row in rows[table] if row.get(column) is not None)
        row[column] = odd if column.endswith("_at") else odd.date()
    return rows


_ACCOUNTS = {f"{table} {word}": (table, odd) for table in _COLUMNS for word, odd in _ODD.items()}


def _build(folder: Path) -> None:
    path = folder / "warehouse.duckdb"
    parts = [_account("plain"), *(_account(name, *odd) for name, odd in _ACCOUNTS.items())]
    write(path, together(parts))
    report = build_models(path)
    assert not report.failure_summary, report.failure_summary


@pytest.fixture(scope="module")
def marts(once: Once) -> Iterator[duckdb.DuckDBPyConnection]:
    path = once("odd_dates", _build) / "warehouse.duckdb"
    with duckdb.connect(str(path), read_only=True) as connection:
        yield connection


def _extents(marts: duckdb.DuckDBPyConnection) -> dict[tuple[str, str], dict[str, tuple[Any, Any]]]:
    """(mart, column of days or months, or of newest moments) → account → the first and the last."""
    dates = "schema_name = 'marts' and data_type = 'DATE'"
    columns = marts.execute(f"select table_name, column_name from duckdb_columns() where {dates}").fetchall()
    return {
        (mart, column): {
            account: (first, last)
            for account, first, last in marts.execute(
                f"select account, min({column}), max({column}) from marts.{mart} group by account"
            ).fetchall()
            if first
        }
        for mart, column in [*columns, *_NEWEST]
    }


@pytest.mark.slow
def test_no_mart_reaches_further_because_of_one_odd_date(marts: duckdb.DuckDBPyConnection) -> None:
    further = [
        (mart, column, account, extent)
        for (mart, column), extents in _extents(marts).items()
        for account, extent in extents.items()
        if extent[1] > extents["plain"][1]
        or (extent[0] < extents["plain"][0] and (mart, column) not in _NEWEST)
    ]
    assert further == []


@pytest.mark.slow
def test_no_mart_of_days_or_months_grows_because_of_one_odd_date(marts: duckdb.DuckDBPyConnection) -> None:
    grown = []
    for mart in {mart for mart, _ in _extents(marts)}:
        sql = f"select account, count(*) from marts.{mart} group by account"
        counts = dict(marts.execute(sql).fetchall())
        grown += [(mart, account) for account, count in counts.items() if count > counts["plain"]]
    assert grown == []


@pytest.mark.slow
def test_odd_dates_are_counted_where_they_are(marts: duckdb.DuckDBPyConnection) -> None:
    counted = marts.execute(
        "select account, subject, odd_date_count from marts.data_coverage where odd_date_count > 0 order by all"
    ).fetchall()
    assert counted == sorted(
        (account, table, 1) for account, (table, _) in _ACCOUNTS.items() if table != _PLANNED
    )
