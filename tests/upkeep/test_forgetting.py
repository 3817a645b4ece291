"""People who were taken out of the archive come back neither with a rebuild nor with the nights after it,
while the service lists them."""

from __future__ import annotations

import json
import re
import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest

from home.identity import FILE
from tests.depth import DEEP
from tests.fixtures import Command, Night, StartSandbox, no_report
from tests.pipelines.sandboxes import move_account
from tests.warehouse.answering import contents
from warehouse.archive import Archive
from warehouse.archive.rewriting import forget_in_archive
from warehouse.archive.suppression import add
from warehouse.forgetting import Forgotten
from warehouse.person import Person, find_person

#: One row: an address that stands in many places, or has a place that few have.
_WANTED = """
    (select email from source.campaign_clickers group by all order by count(*) desc, 1 limit 3)
    union (select email from source.coupons order by is_redeemed desc, 1 limit 3)
    union (select email from source.direct_reviews where email like '%@%' order by 1 limit 3)
    union (select email from source.contacts group by all having count(distinct list_id) > 1 order by 1 limit 3)
"""

PLACES = [
    f"source.{name}"
    for name in (
        "contacts",
        "coupons",
        "campaign_clickers",
        "direct_reviews",
        "timeline_events",
        "timeline_visits",
    )
]


def tables(home: Path) -> dict[str, Counter[str]]:
    """The rows of all tables that follow from the archive, as texts; what responses look like follows from
    what is left of them."""
    with duckdb.connect(str(home / "warehouse.duckdb")) as connection:
        connection.execute("set timezone = 'UTC'")
        return {
            name: Counter(map(repr, rows))
            for name, rows in contents(connection).items()
            if name != "sync.known_shapes"
        }


def bodies(home: Path) -> Iterator[str]:
    with Archive(home / "archive") as archive:
        rows = [
            row
            for _, table in archive.exchanges()
            for row in table.select(["request_id", "outcome"]).to_pylist()
        ]
        ids = [row["request_id"] for row in rows if row["outcome"] == "ok"]
        for response in archive.responses(ids):
            body = response.body if isinstance(response.body, bytes) else response.body.read_bytes()
            yield f"{json.dumps(response.call.params)} {body.decode()}"


class Trace:
    """What gives one of these people away: an address, or a contact's id in the place of one."""

    def __init__(self, people: list[Person], forgotten: Forgotten) -> None:
        addresses = {address for person in people for address in person.addresses}
        self.ids = {str(number) for person in people for _, number in person.contacts}
        self.people = re.compile("|".join(map(re.escape, addresses)), re.IGNORECASE)
        pseudonyms = {
            *map(forgotten.address, addresses),
            *(str(forgotten.contact("main", each)) for each in self.ids),
        }
        self.pseudonyms = re.compile("|".join(map(re.escape, pseudonyms)))

    def is_in(self, row: str, table: str = "") -> bool:
        is_of_contact = table.startswith("source.timeline") or table.endswith(
            ("contact_coverage", "source.contacts")
        )
        ids = self.ids.intersection(re.findall(r"\d+", row)) if is_of_contact else set()
        return bool(ids) or bool(self.people.search(row))


def others(found: dict[str, Counter[str]], is_theirs: Any) -> dict[str, Counter[str]]:
    return {
        name: Counter({row: n for row, n in rows.items() if not is_theirs(row, name)})
        for name, rows in found.items()
    }


@pytest.fixture
def people(home: Path, nights: tuple[Night, Night]) -> list[Person]:
    """Of a home of a whole night."""
    home.mkdir()
    shutil.copytree(nights[0].home / "archive", home / "archive")
    for name in ("warehouse.duckdb", FILE):
        shutil.copy(nights[0].home / name, home)
    with duckdb.connect(str(home / "warehouse.duckdb"), read_only=True) as connection:
        found = [
            find_person(connection, None, address, None)
            for (address,) in connection.execute(_WANTED).fetchall()
        ]
    assert len(found) > 5
    return found


@pytest.mark.usefixtures("unrecorded")
@pytest.mark.slow
def test_nobody_comes_back_and_all_others_stay(
    home: Path, people: list[Person], command: Command, start_sandbox: StartSandbox
) -> None:
    forgotten = add(
        home / "archive",
        [each for one in people for each in one.addresses],
        [each for one in people for each in one.contacts],
    )
    trace, before = Trace(people, forgotten), tables(home)
    assert {name for name, rows in before.items() if any(trace.is_in(row, name) for row in rows)} >= {
        *PLACES,
        "sync.contact_coverage",
    }

    told = forget_in_archive(home / "archive", forgotten, apply=True)
    assert told["requests"] >= told["bodies"] > 20
    (home / "warehouse.duckdb").unlink()
    assert command("rebuild").code == 0

    after = tables(home)
    assert not [(name, row) for name, rows in after.items() for row in rows if trace.is_in(row, name)]
    assert {name: rows.total() for name, rows in before.items()} == {
        name: rows.total() for name, rows in after.items()
    }
    assert others(before, trace.is_in) == others(after, lambda row, name: trace.pseudonyms.search(row))
    assert not [body[:200] for body in bodies(home) if trace.people.search(body)]

    service = start_sandbox()
    move_account(home, service.url)
    counts = {name: after[name].total() for name in PLACES}
    for _ in range(2 if DEEP else 1):
        with no_report():
            ran = command("sync", "--reads-only", sandbox=service)
        assert ran.code == 0, ran.text
        later = tables(home)
        assert not [(name, row) for name, rows in later.items() for row in rows if trace.is_in(row, name)]
        assert {name: later[name].total() for name in PLACES} == counts
        assert (
            later["sync.schema_changes"].total() == 0
        )  # what stands for people is of the types that the service sends
    assert not [body[:200] for body in bodies(home) if trace.people.search(body)]
    requested = [json.dumps(each["params"]) for each in service.asked()]
    assert requested
    assert not [each for each in requested if trace.people.search(each) or trace.pseudonyms.search(each)]
    timelines = {
        each["params"].get("id") for each in service.asked() if each["operation"].endswith("timeline")
    }
    assert not timelines & trace.ids
