"""A small warehouse to plan against, a history that remembers what was planned, and rows from a few words."""

import datetime as dt
import itertools
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from home.settings import Settings
from marketing_api.address import normal_form
from warehouse.connection import open_database
from warehouse.schema import ensure_schema
from write_back.account_state import Known, load_known
from write_back.input.rows import Rows, rows_of_columns
from write_back.item import Options, Past, Plan, State
from write_back.kinds import Kind, make_plan

#: When everything was read, and a while later.
READ_AT = dt.datetime(2026, 3, 2, 8, 0, tzinfo=dt.UTC)
LATER = READ_AT.timestamp() + 3600

LISTS = {1: "News", 2: "Friends, Family", 3: "Shop"}
FIELDS = {1: {"11": "City", "12": "Home Phone"}, 2: {"21": "city", "22": "VIP since"}, 3: {}}
#: (contact, list, address, status code, custom fields as shown)
CONTACTS: list[tuple[int, int, str, int, dict[str, Any] | None]] = [
    (101, 1, "ann@example.com", 1, {"11": "London", "12": ""}),
    (102, 1, "Bo@Example.com", 2, {"11": "Köln ", "12": "0221"}),
    (103, 1, "cy@example.com", 3, {"11": "", "12": 30}),
    (104, 1, "di@example.com", 0, {"11": "Rome", "12": ""}),
    (201, 2, "ann@example.com", 2, {"City": "Paris"}),
    (202, 2, "ed@example.com", 1, {"City": "Oslo"}),
    (301, 3, "ann@example.com", 1, None),
    (302, 3, "fay@example.com", 1, None),
    (303, 3, "fay@example.com", 2, None),
]
_CALLED_AT = dt.datetime(2026, 2, 1, 9, 30, tzinfo=dt.UTC)
#: (contact, when, snippet, details)
EVENTS = [
    (101, _CALLED_AT, "Called about the offer", []),
    (102, _CALLED_AT, "Activity", [{"key": "message", "value": "Met &amp; talked"}]),
]


def make_warehouse(
    path: Path, contacts: Iterable[tuple[int, int, str, int, dict[str, Any] | None]] = CONTACTS
) -> Path:
    """The account `main` as above, in Berlin's time."""
    words = {0: "unconfirmed", 1: "active", 2: "unsubscribed", 3: "bounced"}

    def row(columns: str, *values: Any) -> dict[str, Any]:
        return {"account": "main"} | dict(zip(columns.split(), values, strict=True))

    def person(contact_id: int, list_id: int, email: str, code: int, fields: Any) -> dict[str, Any]:
        columns = "contact_id list_id email email_normalized status_code status custom_fields _deleted_at"
        custom = None if fields is None else json.dumps(fields)
        ids = (contact_id, list_id)
        return row(columns, *ids, email, normal_form(email), code, words[code], custom, None)

    people = [person(*contact) for contact in contacts]
    _, where, _, code, _ = next(iter(contacts))
    fields = {"custom_fields": people[0]["custom_fields"], "_deleted_at": READ_AT}
    gone = person(999, where, "gone@example.com", code, None) | fields
    left = person(998, where, "left@example.com", 2, None) | fields
    tables: dict[str, list[dict[str, Any]]] = {
        "source.business": [row("timezone", "Europe/Berlin")],
        "source.lists": [row("list_id name", *one) for one in LISTS.items()],
        "source.list_fields": [
            row("list_id field_id label", list_id, *field)
            for list_id, labels in FIELDS.items()
            for field in labels.items()
        ],
        "source.contacts": [*people, gone, left, {**people[0], "account": "other", "contact_id": 77}],
        "source.timeline_events": [
            row(
                "contact_id event_key snippet occurred_at details",
                *(one, str(at), text, at, json.dumps(details)),
            )
            for one, at, text, details in EVENTS
        ],
        "sync.coverage": [
            row("table_name scope as_of is_complete", "contacts", f"list_id={list_id}", READ_AT, True)
            for list_id in LISTS
        ],
    }
    with open_database(path) as connection:
        ensure_schema(connection)
        for name, rows in tables.items():
            connection.register("arrow_rows", pa.Table.from_pylist(rows))
            connection.execute(f"insert into {name} by name from arrow_rows")
            connection.unregister("arrow_rows")
    return path


def rows_of(*records: Mapping[str, Any], name: str = "rows.csv") -> Rows:
    """An input with the columns of the first record; `{}` is a blank row."""
    titles = list(dict.fromkeys(title for record in records for title in record))
    columns = [[record.get(title) for record in records] for title in titles]
    return rows_of_columns(name, titles, columns, list(range(2, 2 + len(records))))


DRIFTED = "mismatch on read-back"


class Memory:
    """A history: what plans that were sent did, as the outbox would remember it."""

    def __init__(self) -> None:
        self._past: dict[tuple[str, str, str], Past] = {}
        self._ids = itertools.count(1)

    def find_last(
        self, account: str, subjects: Iterable[str], *kinds: str, read_at: float | None = None
    ) -> dict[str, Past]:
        keys = [(account, kind, subject) for subject in subjects for kind in kinds]
        pasts = [(key[2], self._past[key]) for key in keys if key in self._past]
        return dict(sorted(pasts, key=lambda each: each[1].item_id))

    def note(
        self, plan: Plan, state: State = State.APPLIED, at: float = LATER, message: str | None = None
    ) -> Plan:
        """As if every item of the plan had come to this state."""
        done_at = at if state in (State.APPLIED, State.VERIFIED, State.REJECTED) else None
        verified_at = at if state is State.VERIFIED else None
        for item in plan.items:
            number = next(self._ids)
            for subject, content in item.effects.items():
                past = Past(number, content, state, message, done_at, verified_at, message == DRIFTED)
                key = (plan.account, plan.kind, subject)
                self._past[key] = past._replace(earlier=self._past.get(key))
        return plan


class Planner:
    """Plans one kind of push after another for the same account, and may remember them."""

    def __init__(self, known: Known, kind: Kind, memory: Memory | None = None) -> None:
        self.known = known
        self.kind = kind
        self.memory = memory or Memory()

    def __call__(self, *records: Mapping[str, Any], **options: Any) -> Plan:
        return make_plan(self.kind, rows_of(*records), self.known, self.memory, Options(**options))

    def sent(
        self, *records: Mapping[str, Any], state: State = State.APPLIED, at: float = LATER, **options: Any
    ) -> Plan:
        """Plan it, and remember it as sent."""
        return self.memory.note(
            self(*records, **options), state, at, "Not allowed" if state is State.REJECTED else None
        )

    def drifted(self, *records: Mapping[str, Any], at: float = LATER) -> Plan:
        """Plan it, and remember that it was read back otherwise."""
        return self.memory.note(self(*records), State.APPLIED, at, DRIFTED)

    def read_again(self, at: float = LATER + 3600) -> None:
        """As if a sync had read all contacts since."""
        self.known = replace(self.known, as_of=dict.fromkeys(self.known.as_of, at))


def fates(plan: Plan) -> dict[int, str]:
    """Row → what becomes of it: `sent`, `idle: …` or `bad: …`."""
    found = {row: "sent" for item in plan.items for row in item.rows}
    found |= {row: f"idle: {each.reason}" for each in plan.idle for row in each.rows}
    return found | {row: f"bad: {each.reason}" for each in plan.bad for row in each.rows}


def check_every_row_has_one_fate(plan: Plan) -> None:
    sent = {row for item in plan.items for row in item.rows}
    idle, bad = ([row for each in some for row in each.rows] for some in (plan.idle, plan.bad))
    assert len(sent) == plan.new_count + plan.changed_count
    assert len(sent) + len(idle) + len(bad) == plan.row_count == len(sent | set(idle) | set(bad))


def requests(plan: Plan) -> Iterator[dict[str, str]]:
    """The wire parameters, in order."""
    for item in plan.items:
        yield dict(item.params)


def open_known(path: Path) -> Known:
    return load_known(Settings(path.parent, lock_seconds=5), "main")
