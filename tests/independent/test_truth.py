"""The comparison finds every kind of error, and a naive reader of the server's answers arrives at the same
rows as the truth."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from functools import cache
from typing import Any

import duckdb
import pytest

from . import generate
from .compare import compare_tables
from .schema import TABLES
from .server import serve
from .shape import SURPRISE
from .test_server import data, rows
from .truth import Case, OneOf, Row, expected
from .variants import Variants, live_like

_TYPES = {
    "id": "bigint",
    "count": "bigint",
    "integer": "bigint",
    "double": "double",
    "decimal": "decimal(18, 4)",
    "boolean": "boolean",
    "at": "timestamptz",
    "on": "date",
    "observed": "date",
    "texts": "varchar[]",
    "details": "json",
    "custom": "json",
}


def _plain(kind: str, value: Any, case: Case) -> Any:
    value = value.values[0] if isinstance(value, OneOf) else value
    if kind in ("details", "custom"):
        return json.dumps(value)
    return case.account.today if kind == "observed" else value


@cache
def _memory() -> Any:
    """One for all: beginning a database takes longer than filling it."""
    return duckdb.connect()


@contextmanager
def holding(case: Case, tables: dict[str, list[Row]]) -> Iterator[Any]:
    """A connection to a warehouse in memory that holds exactly these rows."""
    extra = json.dumps(SURPRISE if case.variants.extra_fields else {})
    connection = _memory()
    connection.execute("drop schema if exists source cascade")
    connection.execute("create schema source")
    for name, found in tables.items():
        spec = TABLES[name]
        generated = [column for column in spec.key if column not in spec.columns]
        kinds = {column: _TYPES.get(kind, "varchar") for column, kind in spec.columns.items()}
        kinds |= {"account": "varchar", "extra": "json"} | dict.fromkeys(generated, "varchar")
        connection.execute(
            f"create table source.{name} ({', '.join(f'{column} {kind}' for column, kind in kinds.items())})"
        )
        values = [
            [_plain(kind, row[column], case) for column, kind in spec.columns.items()]
            + ["main", extra, *[f"key {index}"] * len(generated)]
            for index, row in enumerate(found)
        ]
        if values:
            connection.executemany(
                f"insert into source.{name} values ({', '.join('?' * len(kinds))})", values
            )
    yield connection


@pytest.fixture(scope="module")
def case() -> Case:
    return Case(
        generate.account(11, generate.Sizes(contacts=16, campaigns=6, posts=8), wild=True, strange=True),
        live_like(),
    )


@pytest.fixture(scope="module")
def tables(case: Case) -> dict[str, list[Row]]:
    """Right rows for every table, totals for one range that covers everything."""
    found = {name: table.rows for name, table in expected(case).items()}
    ends = {"from_on": generate.HISTORY_START, "to_on": case.account.today}
    derive = expected(case)["sentiment_totals"].derive
    assert derive
    return found | {"sentiment_totals": derive([ends])}


def told(case: Case, tables: dict[str, list[Row]]) -> list[str]:
    """The names of the tables in which a difference is found."""
    with holding(case, tables) as connection:
        return [difference.table for difference in compare_tables(connection, case, only=tables)]


def test_the_truth_agrees_with_itself(case: Case, tables: dict[str, list[Row]]) -> None:
    assert told(case, tables) == []


def _other(value: Any) -> Any:
    """A value of the same type that is wrong."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, dt.datetime):
        return value + dt.timedelta(hours=1)
    if isinstance(value, dt.date):
        return value + dt.timedelta(days=1)
    if isinstance(value, int | float | Decimal):
        return value + 1
    if isinstance(value, list):
        return [*value, "surplus"] if not value or isinstance(value[0], str) else value[1:]
    return {**value, "1": "wrong"} if isinstance(value, dict) else f"{value} wrong"


@pytest.mark.parametrize("table", list(TABLES))
def test_a_wrong_value_in_any_column_is_found(case: Case, tables: dict[str, list[Row]], table: str) -> None:
    for column, kind in TABLES[table].columns.items():
        candidates = [
            row for row in tables[table] if row[column] is not None and not isinstance(row[column], OneOf)
        ]
        if not candidates or kind == "observed" or (table == "sentiment_totals" and column.endswith("_on")):
            continue  # free by design, or nothing to spoil
        wrong = [
            {**row, column: _other(row[column])} if row is candidates[0] else row for row in tables[table]
        ]
        assert told(case, {table: wrong}) == [table], column


@pytest.mark.parametrize("table", ["contacts", "timeline_events", "online_reviews", "campaign_links"])
def test_a_lost_or_doubled_row_is_found(case: Case, tables: dict[str, list[Row]], table: str) -> None:
    with holding(case, {table: tables[table][1:]}) as connection:
        (lost,) = compare_tables(connection, case, only=[table])
    assert (len(lost.missing), len(lost.surplus)) == (1, 0)
    with holding(case, {table: [*tables[table], tables[table][0]]}) as connection:
        (doubled,) = compare_tables(connection, case, only=[table])
    assert len(doubled.surplus) == 1


def test_lost_surprises_and_uncovered_ranges_are_found(case: Case, tables: dict[str, list[Row]]) -> None:
    late = {**tables["sentiment_totals"][0], "from_on": dt.date(2016, 1, 1)}
    assert told(case, {"sentiment_totals": [late]}) == ["sentiment_totals"]
    with holding(case, {"goals": tables["goals"]}) as connection:
        connection.execute("update source.goals set extra = '{}'")
        assert compare_tables(connection, case, only=["goals"])


def test_a_naive_reader_of_specified_answers_arrives_at_the_truth() -> None:
    """Twenty lines of reading, for the variant without any quirk: server and truth cannot both be wrong in
    the same way."""
    case = Case(generate.account(21, generate.Sizes(contacts=25), zone="America/New_York"), Variants())
    with serve(case.account, case.variants) as service:
        read = _naive(service, case)
    assert told(case, read) == []


def _naive(service: Any, case: Case) -> dict[str, list[Row]]:
    def local(text: str, form: str = "%m/%d/%Y %H:%M") -> dt.datetime:
        return dt.datetime.strptime(text, form).replace(tzinfo=case.account.zone)

    reviews = rows(data(service, "reputation/direct")["reviews"]["items"])
    found: dict[str, list[Row]] = {"contacts": [], "timeline_events": [], "campaigns": []}
    found["direct_reviews"] = [
        {
            "review_id": int(r["id"]),
            "reviewed_at": local(f"{r['date']} {r['time']}", "%m/%d/%Y %I:%M %p"),
            **_named(r, "email phone inquiry notes rating"),
        }
        for r in reviews
    ]
    for group, entry in data(service, "emailmarketing/campaigns", filter="all", limit=1000)["campaigns"][
        "items"
    ].items():
        for c in entry["data"]:
            kind = "automated" if group == "Automation" else "standard"
            others = {
                "reply_to": c["replyto"],
                "created_at": local(c["creation_date"]),
                "status": group.lower(),
                "type": kind,
            }
            found["campaigns"].append(
                {"campaign_id": int(c["id"]), **others, **_named(c, "subject message from_email from_name")}
            )
    seen = set()
    for each in data(service, "emailmarketing/getlists")["lists"]["items"]:
        listed = int(each["id"])
        for c in data(service, "emailmarketing/getcontacts", listid=listed, limit=1000)["contacts"]["items"]:
            code = int(c["status"])
            at = None if c["registration_date"] == "N/A" else local(c["registration_date"])
            custom = {name: value for name, value in c.items() if name.isdigit()}
            word = {0: "unconfirmed", 1: "active", 2: "unsubscribed", 3: "bounced"}.get(code)
            state = {"status": word, "status_code": code, "registered_at": at, "custom_fields": custom}
            found["contacts"].append(
                {"list_id": listed, "contact_id": int(c["id"]), "email": c["email"], **state}
            )
            seen.add(c["id"])
    for contact in seen:
        for e in data(service, "emailmarketing/getcontacttimeline", id=contact)["timeline"]["data"]:
            at = (
                dt.datetime.fromtimestamp(int(e["timestamp"]), dt.UTC)
                if "timestamp" in e
                else local(e["datetime"])
            )
            found["timeline_events"].append(
                {"contact_id": int(contact), "occurred_at": at, **_named(e, "key snippet details")}
            )
    return found


def _named(entry: Row, names: str) -> Row:
    return {name: entry[name] for name in names.split()}
