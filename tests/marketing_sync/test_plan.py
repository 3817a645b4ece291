"""Several nights of one account: what is asked when, what the plan says before, and what a person is told."""

import datetime as dt
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest

from tests.dialects.server import Options, serve
from tests.fixtures import Command
from tests.pipelines.sandboxes import Sandbox
from tests.pipelines.tables import query
from tests.waiting import HANGS_S
from warehouse.archive.archive import Archive
from warehouse.loads.load import Load

pytestmark = pytest.mark.usefixtures("unrecorded")

CONTACTS = 100
ONLY = ("sync", "--only", "lists", "contacts", "campaigns", "campaign_stats", "timelines", "coupons")


@pytest.fixture
def service() -> Iterator[Sandbox]:
    """An account of this test alone."""
    with serve(Options(contacts=CONTACTS, rate_limit=0)) as url:
        yield Sandbox(url)


def asked(service: Sandbox, since: int) -> Counter[str]:
    return Counter(entry["operation"].rpartition("/")[2] for entry in service.asked(since))


def age(home: Path, days: int) -> None:
    """Let the warehouse believe that everything was asked so many days earlier."""
    with duckdb.connect(str(home / "warehouse.duckdb")) as connection:
        for name in (
            "timeline_asked_at",
            "timeline_first_asked_at",
            "coupon_asked_at",
            "coupon_first_asked_at",
        ):
            connection.execute(f"update sync.contact_coverage set {name} = {name} - to_days({days})")
        for table in ("contacts", "campaign_clickers", "campaign_stats", "campaigns"):
            connection.execute(f"update source.{table} set _changed_at = _changed_at - to_days({days})")


def loads(home: Path, asset: str) -> list[Any]:
    """(is it complete, days until it is due) of each load of an asset, in their order."""
    with Archive(home / "archive") as archive:
        found = [Load.from_event(event) for event in archive.ledger.list_loads()]
    now = dt.datetime.now(dt.UTC)
    return [
        (load.is_complete, round((load.due_at - now).days + 0.5))
        for load in found
        if load.asset == asset and load.due_at
    ]


def test_what_was_never_read_is_read_with_what_needs_it(
    command: Command, service: Sandbox, home: Path
) -> None:
    ran = command("sync", "--only", "lists", sandbox=service)
    assert "unread prerequisites, read first: business" in ran.out
    assert "no contact of this account is known yet" in command("sync", "--dry-run", sandbox=service).out
    ran = command("sync", "--only", "timelines", sandbox=service)
    assert ran.code == 0, ran.text
    assert "unread prerequisites, read first: contacts" in ran.out
    assert query(home, "select count(distinct contact_id) from source.timeline_events")[0][0] > 0
    planned = command("sync", "--dry-run", "--only", "campaign_stats", sandbox=service).out
    assert "campaign_stats" in planned
    assert "timelines" not in planned
    planned = command("sync", "--dry-run", "--only", "contacts", "--all", sandbox=service).out
    since = service.count
    told = int(planned.split("\nlistings", 1)[1].split()[0])
    ran = command("sync", "--only", "contacts", sandbox=service)
    assert (ran.code, "read first" in ran.out) == (0, False), ran.text
    assert told == asked(service, since)["getcontacts"]
    assert command("sync", "--dry-run", "--only", "contcats", sandbox=service).code == 2


@pytest.mark.slow
def test_every_night_reads_everybody_and_a_rerun_of_the_night_nobody(
    command: Command, service: Sandbox, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("assets.fetch.BATCH_RESPONSES", 40)
    monkeypatch.setattr("assets.fetch.BATCH_SECONDS", HANGS_S)
    assert "nothing has been synced yet" in command("sync", "--dry-run", sandbox=service).out
    assert command(*ONLY, sandbox=service).code == 0
    first = asked(service, 0)
    assert first["getcontacttimeline"] == CONTACTS
    read = loads(home, "timelines")
    assert read == [(False, 0), (False, 0), (True, 6)], "until all are there, the next night goes on"

    since = service.count
    ran = command(*ONLY, sandbox=service)
    assert ran.code == 0, ran.text
    assert asked(service, since)["getcontacttimeline"] <= 0.02 * CONTACTS, "a rerun of the same night"
    assert "can wait" in ran.out

    age(home, 1)
    planned, since = command("sync", "--dry-run", sandbox=service), service.count
    assert "it reads every timeline and all coupons" in planned.out
    assert "because the night has time" in planned.out, "reasons are in words"
    told = int(planned.out.split("\nlistings", 1)[1].split()[0])
    planned = command("sync", "--dry-run", "--max-requests", "4", sandbox=service).out
    assert "of listings" in planned, "listings come first"
    assert service.count == since, "planning asks nothing"
    assert command(*ONLY, sandbox=service).code == 0
    night = asked(service, since)
    others = sum(night.values()) - sum(night[name] for name in ("getcontacttimeline", "getcoupon", "stats"))
    assert others - 1 <= told <= others, "the look whose account it is comes before; no detail is asked again"
    assert night["getcontacttimeline"] == CONTACTS
    assert night["getcoupon"] == first["getcoupon"]
    assert query(
        home, "select count(*), bool_and(is_complete) from sync.coverage where table_name = 'timeline_events'"
    ) == [(1, True)]
    assert "room" in {reason for (reason,) in query(home, "select reason from sync.plans")}

    since = service.count
    assert command(*ONLY, "--all", sandbox=service).code == 0
    assert asked(service, since)["getcontacttimeline"] == CONTACTS


@pytest.mark.slow
def test_a_budget_takes_the_newest_first_says_what_is_left_and_the_next_night_goes_on(
    command: Command, service: Sandbox, home: Path
) -> None:
    assert command("sync", "--only", "lists", "contacts", sandbox=service).code == 0
    since = service.count
    ran = command("sync", "--only", "timelines", "coupons", "--max-requests", "40", sandbox=service)
    assert ran.code == 1
    assert "never requested yet" in ran.out
    assert service.count - since <= 40
    known = (
        "select min(registered_at) from source.contacts join sync.contact_coverage using (account, "
        "contact_id) where status = 'active'"
    )
    others = (
        "select max(registered_at) from source.contacts anti join sync.contact_coverage "
        "using (account, "
        "contact_id) where status = 'active'"
    )
    assert query(home, known) >= query(home, others)
    coverage = (
        "select table_name, is_complete from sync.coverage where table_name in ('coupons', "
        "'timeline_events') order by all"
    )
    assert query(home, coverage) == [("coupons", False), ("timeline_events", False)], "no coupons were asked"

    planned = command("sync", "--dry-run", "--max-requests", "30", sandbox=service)
    assert "the limit of requests leaves out" in planned.out
    assert "reading everybody within 7 days takes" in planned.out
    since = service.count
    assert command("sync", "--only", "timelines", "coupons", sandbox=service).code == 0
    assert asked(service, since)["getcontacttimeline"] < CONTACTS, "what was asked before is not asked again"
    assert query(home, "select count(timeline_asked_at) from sync.contact_coverage") == [(CONTACTS,)]
    assert query(home, coverage) == [("coupons", True), ("timeline_events", True)]
    assert "due" in command("status", sandbox=service).out
