"""Ten kinds of change in the answers, over HTTP: each is listed once, none costs data, a rebuild agrees."""

import json
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from marketing_api.operation import Operation
from marketing_api.sandbox.app import App
from marketing_api.sandbox.responses import Response
from tests.dialects.server import serve
from tests.fixtures import STANDING, Command, Night
from tests.pipelines.sandboxes import Sandbox, move_account
from tests.pipelines.tables import WHEN, Tables, query, rows

pytestmark = pytest.mark.usefixtures("unrecorded")

#: A change of the members of `data`, made in place.
Change = Callable[[dict[str, Any]], None]


def entries(value: Any, *path: str) -> list[dict[str, Any]]:
    """The objects of a collection within `value`, whatever shape it has."""
    for name in path:
        value = value[name]
    return [
        entry for entry in (value.values() if isinstance(value, dict) else value) if isinstance(entry, dict)
    ]


def _new_field(data: dict[str, Any]) -> None:
    for entry in entries(data, "lists", "items"):
        entry["colour"] = "ann@example.com red"


def _in_timelines(data: dict[str, Any]) -> None:
    """A nested new field, a new key, and a new part beside those that are known."""
    for event in entries(data, "timeline", "data"):
        for detail in event.get("details") or ():
            detail["unit"] = 3
    data["timeline"]["data"].append(
        {"key": "fax-sent", "snippet": "A fax", "timestamp": 1415178000, "details": []}
    )
    data["timeline"]["count"] = data["timeline"]["total"] = len(data["timeline"]["data"])
    data["surveys"] = {"count": 1, "data": [{"id": 1}]}


def _text_to_number(data: dict[str, Any]) -> None:
    for entry in entries(data, "users", "items"):
        entry["id"] = int(entry["id"])


def _number_to_text(data: dict[str, Any]) -> None:
    data["contacts"]["count"] = str(data["contacts"]["count"])


def _number_to_object(data: dict[str, Any]) -> None:
    data["stats"]["items"][0]["tracks"] = {"all": 7}


def _enum_grows(data: dict[str, Any]) -> None:
    items = data["groups"]["items"]
    items.append({**items[0], "id": "999", "status": "Paused"})
    data["groups"]["count"] = len(items)


def _list_to_object(data: dict[str, Any]) -> None:
    data["audiences"]["items"] = {f"a{entry['id']}": entry for entry in data["audiences"]["items"]}


def _field_missing(data: dict[str, Any]) -> None:
    for entry in entries(data, "webhooks", "items"):
        del entry["action_rules"]["device_filter"]


CHANGES: dict[str, Change] = {
    "emailmarketing/getlists": _new_field,
    "emailmarketing/getcontacttimeline": _in_timelines,
    "user/managers": _text_to_number,
    "emailmarketing/getcontacts": _number_to_text,
    "socialmedia/stats": _number_to_object,
    "user/groups": _enum_grows,
    "emailmarketing/getaudiences": _list_to_object,
    "webhook/lists": _field_missing,
}
#: The assets of these operations.
CHANGED = (
    "lists",
    "timelines",
    "managers",
    "contacts",
    "social_links",
    "user_groups",
    "audiences",
    "webhooks",
)
EXPECTED = {
    ("audiences", "new type", "response.data.audiences.items", "list", "object", "object"),
    ("contacts", "new type", "response.data.contacts.count", "number", "text", "text"),
    ("lists", "new field", "colour", None, None, "text of 19 characters"),
    ("managers", "new type", "id", "text", "number", "number"),
    ("social_links", "new type", "tracks", "number", "object", "object of 1 fields"),
    ("timeline_events", "new field", "details.unit", None, None, "number"),
    ("timeline_events", "new field", "response.data.surveys", None, None, "object"),
    ("timeline_events", "new value", "key", "3 values", "fax-sent", "fax-sent"),
    ("user_groups", "new value", "status", "1 values", "Paused", "Paused"),
    ("webhooks", "field missing", "device_filter", "text", None, None),
}


#: Columns that hold what was added, the hash of a listing's entry, and the column of which a value cannot be
#: read any more.
_TOUCHED = ("extra", "details", "_listing_hash", "track_count")


@pytest.fixture
def changed() -> Iterator[Sandbox]:
    """The account of `calm_night`, whose answers are changed."""
    answer = App.apply

    def changing(app: App, operation: Operation, *rest: Any) -> Response:
        response = answer(app, operation, *rest)
        if (change := CHANGES.get(operation.name)) is not None:
            body = json.loads(response.body)
            change(body["response"]["data"])
            response.body = json.dumps(body).encode()
        return response

    with patch.object(App, "apply", changing), serve(STANDING) as url:
        yield Sandbox(url)


def listed(home: Path) -> list[tuple[Any, ...]]:
    return query(
        home, "select table_name, change, field, before, after, sample from sync.schema_changes order by all"
    )


def lacking(before: Tables, after: Tables) -> dict[str, Counter[str]]:
    """Rows that were there before and are not any more, by table."""
    return {
        name: lost
        for name, found in before.items()
        if (lost := Counter(map(str, found)) - Counter(map(str, after[name])))
    }


@pytest.mark.slow
def test_each_kind_of_change_is_listed_once_and_costs_no_data(
    calm_night: Night, home: Path, changed: Sandbox, command: Command
) -> None:
    shutil.copytree(calm_night.home, home)
    move_account(home, changed.url)
    before = rows(home, "source", *WHEN, *_TOUCHED)
    words = ("sync", "--all", "--only", *CHANGED)
    first = command(*words, sandbox=changed)
    assert listed(home) == sorted(EXPECTED, key=str)
    assert "webhooks: field missing device_filter (text)" in first.out
    assert "user_groups: new value status (1 values → Paused)" in first.out
    second = command(*words, sandbox=changed)
    assert "schema changes" not in second.out
    assert listed(home) == sorted(EXPECTED, key=str)
    assert lacking(before, rows(home, "source", *WHEN, *_TOUCHED)) == {}
    assert query(
        home, "select count(*) from source.social_links where track_count is null and short_url is not null"
    ) == [(1,)]
    assert query(home, "select table_name, reason from sync.rejected_records") == [
        ("social_links", "tracks: not a number")
    ]
    assert (first.code, second.code) == (0, 0)
    assert (
        "note: social_links, account main: 1 rows of social_links were loaded without a value that "
        "could not be read" in second.out
    )

    assert query(
        home,
        "select count(distinct list_id), min(extra ->> 'colour') from source.lists where extra is not null",
    ) == [(5, "ann@example.com red")]
    shown = json.loads(command("status", "--json").out)["schema_changes"]
    assert {(each["table"], each["change"], each["field"]) for each in shown} == {row[:3] for row in EXPECTED}
    assert "colour" in command("status").out
    every = (
        query(home, "from sync.schema_changes order by all"),
        query(home, "from sync.known_shapes order by all"),
    )
    assert "ann@example.com" not in str(every)
    assert command("rebuild").code == 0
    assert (
        query(home, "from sync.schema_changes order by all"),
        query(home, "from sync.known_shapes order by all"),
    ) == every
    assert query(
        home,
        "select count(distinct list_id), min(extra ->> 'colour') from source.lists where extra is not null",
    ) == [(5, "ann@example.com red")]
