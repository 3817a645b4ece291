"""Somebody who is unsubscribed, bounced or unconfirmed on any list becomes active nowhere without the switch, in
whichever way it is sent.

The server's own log of what writes have made of statuses judges (`/sandbox/statuses`)."""

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, Phase, given, settings

from tests.depth import DEEP
from tests.fixtures import Command
from tests.pipelines.sandboxes import Sandbox
from tests.write_back.conftest import MakeDesk
from tests.write_back.desk import Desk
from tests.write_back.test_consent import AT_ONCE, CODES, NEWS, SHOP, Account, changes, plan
from write_back.kinds import NOT_IDEMPOTENT

NAMES = {NEWS: "News", SHOP: "Shop"}
LISTS = st.sampled_from([NEWS, SHOP])
STATUSES = st.sampled_from([None, *CODES])
#: Somebody who is not active on one list; on the other one in any way, or not at all.
BEGINNINGS = st.tuples(LISTS, st.sampled_from(["unsubscribed", "bounced", "unconfirmed"]), STATUSES)
ROWS = st.fixed_dictionaries(
    {"list": st.sampled_from(["News", "Shop", "News,Shop"]), "status": STATUSES, "City": st.just(None)}
) | st.fixed_dictionaries(
    {"list": st.just("News"), "status": STATUSES, "City": st.sampled_from(["Bath", "York"])}
)
CALLS = st.sampled_from(["synccontact", "addcontact", "editcontact", "movecontact"])
PUSHES = st.tuples(st.sampled_from(["push", "push all", "audience sync"]), ROWS)
BY_HAND = st.tuples(st.just("call"), st.tuples(CALLS, LISTS, st.sampled_from(["Active", "0", "1", None])))
AGAIN = st.tuples(st.just("retry"), st.none())
ELSEWHERE = st.one_of(
    st.tuples(st.just("read"), LISTS),
    st.tuples(st.just("turn"), st.tuples(LISTS, st.sampled_from(["Disactive", "3", "0"]))),
    st.tuples(st.just("take off"), LISTS),
)
#: What others do at the service, and then a way of sending.
STEPS = st.tuples(st.lists(ELSEWHERE, max_size=2), st.one_of(PUSHES, PUSHES, BY_HAND, AGAIN))
_NUMBERS = itertools.count()


@dataclass
class Person:
    """One person on lists of a service, and what a warehouse knows of them."""

    desk: Desk
    command: Command
    known: Account = field(default_factory=Account.empty)
    pushes: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.email = f"p{next(_NUMBERS)}@example.com"

    def contacts(self, list_id: int) -> Iterator[str]:
        for contact_id, one in self.desk.written().items():
            if one and (one["email"], one["list_id"]) == (self.email, list_id):
                yield contact_id

    def take(self, step: str, given: Any) -> None:
        steps: dict[str, Callable[[Any], object]] = {
            "push": lambda row: self.push(row),
            "push all": lambda row: self.push(row, send_all=True),
            "audience sync": lambda row: self.push(row, is_standing=True, fill_only=True),
            "call": self.call,
            "retry": self.retry,
            "read": lambda list_id: self.known.read(self.desk, list_id),
            "turn": self.turn,
            "take off": self.take_off,
        }
        steps[step](given)

    def push(self, row: dict[str, Any], **options: Any) -> None:
        planned = plan(self.known, self.desk.outbox, {"email": self.email, **row}, **options)
        self.pushes.append(self.desk.outbox.enqueue_plan(planned, options=options))
        self.desk.send(policy=AT_ONCE)

    def retry(self, _: None) -> None:
        if self.pushes:
            self.desk.verify(*self.pushes, how="all", policy=AT_ONCE)
            self.desk.outbox.retry_items("main", not_idempotent=NOT_IDEMPOTENT)
            self.desk.send(policy=AT_ONCE)

    def call(self, given: tuple[str, int, str | None]) -> None:
        """A write by hand that nobody is asked about."""
        operation, list_id, status = given
        words = [f"listid={list_id}", f"email={self.email}"]
        if operation in ("editcontact", "movecontact"):
            source = SHOP if list_id == NEWS else NEWS
            (contact_id, *_) = [*self.contacts(source), None]
            if contact_id is None:
                return
            words = [f"id={contact_id}"]
            if operation == "movecontact":
                words, status = [*words, f"listid={list_id}", f"sourceid={source}"], None
        elif operation == "addcontact":
            status = status or "Active"
        words += [f"status={status}"] if status else []
        self.command("call", f"emailmarketing/{operation}", *words, "--yes", sandbox=Sandbox(self.desk.url))

    def turn(self, given: tuple[int, str]) -> None:
        list_id, status = given
        for contact_id in self.contacts(list_id):
            self.desk.control_write("editcontact", id=contact_id, status=status)

    def take_off(self, list_id: int) -> None:
        for contact_id in self.contacts(list_id):
            self.desk.control_write("deletecontact", id=contact_id, listid=list_id)

    def raised(self, since: int) -> list[Any]:
        """Changes that made the person active, who was something else on whichever list."""
        found = self.desk.control("statuses", since=since)["items"]
        return [
            one
            for one in found
            if one["email"] == self.email
            and one["after"] == 1
            and any(code != 1 for code in (*one["before"], *one["elsewhere"]))
        ]


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("found", ["object", "array", "by-list"])
def test_nobody_becomes_active_anywhere_without_the_switch(
    make_desk: MakeDesk, command: Command, home: Any, found: str
) -> None:
    desk = make_desk(switches={"email-found": found})

    @settings(
        max_examples=300 if DEEP else 25,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        database=None,
        phases=[Phase.generate],
    )
    @given(BEGINNINGS, st.lists(STEPS, min_size=2, max_size=5))
    def check(begins: tuple[int, str, str | None], steps: list[tuple[list[Any], Any]]) -> None:
        list_id, status, other = begins
        person = Person(desk, command)
        for where, word in ((list_id, status), (SHOP if list_id == NEWS else NEWS, other)):
            if word is not None:
                desk.control_write("addcontact", email=person.email, listid=where, status=CODES[word])
        since = changes(desk)
        for others, sending in steps:
            for step, what in (*others, sending):
                person.take(step, what)
        assert person.raised(since) == []

    check()


def test_the_switch_makes_active_on_every_list_that_a_row_names(
    desk: Desk, command: Command, home: Any
) -> None:
    person = Person(desk, command)
    for list_id in NAMES:
        desk.control_write("addcontact", email=person.email, listid=list_id, status="Disactive")
    since = changes(desk)
    person.push({"list": "News", "status": "active"})
    assert person.raised(since) == []
    person.push({"list": "News", "status": "active"}, resubscribe=True)
    assert [one["list_id"] for one in person.raised(since)] == [NEWS]


@pytest.mark.parametrize("yes", [(), ("--yes",)])
def test_a_call_that_subscribes_somebody_again_says_so_and_needs_agreement(
    desk: Desk, command: Command, home: Any, monkeypatch: pytest.MonkeyPatch, yes: tuple[str, ...]
) -> None:
    person = Person(desk, command)
    desk.control_write("addcontact", email=person.email, listid=SHOP, status="Disactive")
    since = changes(desk)
    words = ("call", "emailmarketing/synccontact", f"email={person.email}", f"listid={NEWS}", "status=Active")
    monkeypatch.setattr("sys.stdin", None)
    ran = command(*words, *yes, sandbox=Sandbox(desk.url))
    assert ran.code == 1
    assert "is unsubscribed on some list" in ran.err
    assert "nothing was sent" in ran.err
    assert person.raised(since) == []
    assert command(*words, "--yes", "--resubscribe", sandbox=Sandbox(desk.url)).code == 0
    assert [one["list_id"] for one in person.raised(since)] == [NEWS]
