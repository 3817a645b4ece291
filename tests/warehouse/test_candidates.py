"""What the tables say about whom to ask next."""

import datetime as dt
from typing import Any

import pyarrow as pa
import pytest

from assets.planning.candidates import ACTIVE
from marketing_api.operations import campaigns, contacts
from tests.warehouse.answering import START, Home
from tests.warehouse.loads.test_contact_coverage import add_contacts, coupons
from tests.warehouse.timelines import event, load, timeline
from warehouse import tables
from warehouse.bookkeeping import Planned, write_plan

pytestmark = pytest.mark.usefixtures("kept_open")


def people(home: Home) -> dict[int, dict[str, Any]]:
    candidates = home.warehouse.timeline_candidates("main", dt.datetime.now(dt.UTC))
    return {row["contact_id"]: row for row in candidates.to_pylist()}


def stats(
    home: Home, campaign_id: int, opened: int, unopened: int, *clickers: str, minutes: float = 0
) -> None:
    told = [f"{email}(2 clicks)" for email in clickers]
    clicks = [{"url": "https://x.example/a", "message": "A", "clickers": told}]
    numbers = {"open": f"{opened} (1%)", "unopened": f"{unopened} (1%)"}
    numbers |= dict.fromkeys(("bounced", "unsubscribed"), "0 (0%)")
    data = {"campaign": {"stats": numbers, "clicks": clicks}}
    answer = home.answer(campaigns.STATS, data, minutes, id=campaign_id, type="standard")
    home.load([answer], tables.CAMPAIGN_STATS, tables.CAMPAIGN_LINKS, tables.CAMPAIGN_CLICKERS)


def test_everybody_is_a_candidate_once_and_who_was_never_asked_has_no_history(home: Home) -> None:
    add_contacts(home, (1, "ann@x.com"), (2, "Bob@x.com"))
    add_contacts(home, (1, "ann@x.com"), list_id=13)
    load(home, timeline(home, 1))
    found = people(home)
    assert {id_: row["asked_at"] is not None for id_, row in found.items()} == {1: True, 2: False}
    emails = home.warehouse.coupon_candidates("main")["email"].to_pylist()
    assert emails == ["Bob@x.com", "ann@x.com"], "as the service shows them"


def test_active_and_new_contacts_come_first(home: Home) -> None:
    items = [
        {"id": 1, "email": "a@x.com", "status": "1", "registration_date": "01/01/2024 10:00"},
        {"id": 2, "email": "b@x.com", "status": "2", "registration_date": "01/01/2026 10:00"},
        {"id": 3, "email": "c@x.com", "status": "1", "registration_date": "01/01/2025 10:00"},
        {"id": 4, "status": "1"},
    ]
    home.load([home.answer(contacts.GETCONTACTS, {"contacts": {"items": items}}, listid=12)], tables.CONTACTS)
    assert list(people(home)) == [3, 1, 4, 2]
    assert home.warehouse.coupon_candidates("main")["email"].to_pylist() == ["c@x.com", "a@x.com", "b@x.com"]


def test_what_was_noticed_about_a_contact_is_dated(home: Home) -> None:
    add_contacts(home, (1, "ann@x.com"), (2, "bob@x.com"))
    load(home, timeline(home, 1, event(1)), timeline(home, 2))
    stats(home, 5, 3, 7, "ANN@x.com", minutes=60)
    found = people(home)
    assert (found[1]["clicked_at"], found[2]["clicked_at"]) == (START + dt.timedelta(hours=1), None)
    assert found[1]["row_at"] == START - dt.timedelta(hours=1)


def test_messages_of_campaigns_are_no_days_on_which_the_contact_or_an_automation_did_something(
    home: Home,
) -> None:
    add_contacts(home, (1, "ann@x.com"), (2, "bob@x.com"))
    today = int(dt.datetime.now(dt.UTC).timestamp()) // 86_400 * 86_400
    lately = today - 1_700_000_000 - 2 * 86_400 + 7_200
    automated = {"name": "Welcome", "type": "email", "datetime": "-", "details": []}
    automated["timestamp"] = 1_700_000_000 + lately - 86_400
    events = [event(lately), event(lately + 9), event(5)]
    events += [event(at, kind="form-filled") for at in (lately, lately + 1, lately - 70 * 86_400)]
    told = timeline(home, 1, *events, automated={"data": [automated]})
    load(home, told, timeline(home, 2))
    found = people(home)
    assert [found[1][name] for name in ACTIVE] == [1 << 2 | 1 << 3, 1 << 72 - 64]
    assert [found[2][name] for name in ACTIVE] == [None, None]
    assert (found[1]["days_since_active"], found[2]["days_since_active"]) == (2, None)


def test_our_own_pushes_are_noticed_by_contact_and_by_address(home: Home) -> None:
    add_contacts(home, (1, "ann@x.com"), (2, "bob@x.com"), (3, "cid@x.com"))
    assert {row["pushed_at"] for row in people(home).values()} == {None}
    with home.warehouse.open_for_writing() as connection:
        for pushed in (
            "'main' as account, 1 as contact_id",
            "'main' as account, 'BOB@x.com' as email, 'bob@x.com' as email_normalized",
            "'other' as account, 'cid@x.com' as email, 'cid@x.com' as email_normalized",
            "'main' as account, 3 as contact_id, 'rejected' as state",
        ):
            sql = f"insert into sync.writebacks by name select {pushed}, $at as done_at"
            connection.execute(sql, {"at": START})
    assert {id_: row["pushed_at"] for id_, row in people(home).items()} == {1: START, 2: START, 3: None}


def test_a_campaign_reaches_lists_of_which_somebody_clicked(home: Home) -> None:
    add_contacts(home, (1, "ann@x.com"), (2, "bob@x.com"))
    add_contacts(home, (3, "cid@x.com"), list_id=13)
    yesterday = int(dt.datetime.now(dt.UTC).timestamp()) - 1_700_000_000 - 86_400
    load(home, timeline(home, 1, event(yesterday)), timeline(home, 2))
    stats(home, 5, 0, 0, minutes=60)
    assert {row["list_at"] for row in people(home).values()} == {None}, "not sent yet"
    day = 24 * 60
    stats(home, 5, 2, 3, minutes=day)
    sent_at = START + dt.timedelta(days=1)
    assert {row["list_at"] for row in people(home).values()} == {sent_at}, "nobody has clicked yet"
    stats(home, 5, 3, 2, "ann@x.com", minutes=2 * day)
    found = people(home)
    assert [found[id_]["list_at"] for id_ in (1, 2, 3)] == [sent_at, sent_at, None]
    # who got messages before
    assert [found[id_]["campaign_at"] for id_ in (1, 2, 3)] == [sent_at, None, None]


def test_a_plan_is_written_with_what_came_of_it(home: Home) -> None:
    add_contacts(home, (1, "ann@x.com"), (2, "bob@x.com"), (3, "cid@x.com"))
    load(home, timeline(home, 1, event(1)), timeline(home, 2, event(1)))
    load(home, timeline(home, 1, event(1), minutes=60), timeline(home, 2, event(1), event(2), minutes=60))
    coupons(home, "ann@x.com", 7, minutes=60)
    by_id = {"key": [1, 2, 3], "reason": ["turn", "clicked", "new"], "chance": [0.25, 0.5, 0.0]}
    by_email = {"key": ["ann@x.com", "bob@x.com"], "reason": ["new", "new"], "chance": [0.0, 0.0]}
    lines = {"timelines": pa.table(by_id), "coupons": pa.table(by_email)}
    planned = Planned("main", START + dt.timedelta(minutes=30), lines)
    with home.warehouse.open_for_writing() as connection:
        write_plan(connection, "r1", planned)
        write_plan(connection, "r1", planned)
    columns = "question, reason, planned_count, asked_count, changed_count, expected_count"
    rows = home.rows("sync.plans", columns)
    assert [tuple(row.values()) for row in rows] == [
        ("coupons", "new", 2, 1, 1, 0),
        ("timelines", "clicked", 1, 1, 1, 0.5),
        ("timelines", "new", 1, 0, 0, 0),
        ("timelines", "turn", 1, 1, 0, 0.25),
    ]
