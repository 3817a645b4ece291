"""What an account's days show while not all of its lists have been read, and without any network."""

from pathlib import Path

import duckdb

from tests.warehouse.marts.by_hand import at, row
from tests.warehouse.marts.rows import Row, write
from tests.warehouse.selected import selected
from warehouse.models import ModelSettings, build_models


def _read(table: str, scope: str, day: int) -> Row:
    return row("account table_name scope as_of is_complete", "main", table, scope, at(f"{day} 02:30"), True)


def _of_account(*rows: Row, first_seen_day: int = 17) -> list[Row]:
    seen_at = at(f"{first_seen_day} 02:30")
    return [{"account": "main", "_first_seen_at": seen_at, "_changed_at": seen_at, **one} for one in rows]


_CONTACT = "list_id contact_id email status registered_at"
ACCOUNT = {
    "business": _of_account(row("business_id timezone", 1, "UTC")),
    "lists": _of_account(row("list_id name", 1, "Read at once"), row("list_id name", 2, "Read later")),
    "contacts": [
        *_of_account(row(_CONTACT, 1, 1, "ann@x.example", "active", at("01 12:00"))),
        *_of_account(row(_CONTACT, 2, 2, "bob@x.example", "active", at("01 12:00")), first_seen_day=19),
    ],
    "sync.coverage": [
        _read("contacts", "list_id=1", 20),
        _read("contacts", "list_id=2", 20),
        _read("social_posts", "2026-03-17..2026-03-19", 20),
    ],
    "sync.readings": [
        _read("contacts", f"list_id={list_id}", day) | {"timezone": "UTC"}
        for list_id, days in ((1, (17, 18, 19, 20)), (2, (19, 20)))
        for day in days
    ],
}


def test_growth_begins_when_the_last_list_was_read_and_posts_where_none_were_are_zero(tmp_path: Path) -> None:
    path = tmp_path / "warehouse.duckdb"
    write(path, ACCOUNT)
    assert not build_models(path, ModelSettings(), select=selected("+account_daily")).failure_summary
    with duckdb.connect(str(path), read_only=True) as connection:
        found = connection.execute(
            "select day(day_on), member_count, list_days_covered, post_count from marts.account_daily "
            "where day_on >= date '2026-03-17' order by day_on"
        ).fetchall()
    assert found == [(17, None, None, 0), (18, None, None, 0), (19, 2, None, 0), (20, 2, 1, None)]
