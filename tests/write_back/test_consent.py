"""Nobody goes from unsubscribed, bounced or unconfirmed to active without the switch, whenever they leave and
whatever gets lost.

The server's own log of what writes have made of statuses judges (`/sandbox/statuses`), not what we say of
ourselves."""

import random
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from home.settings import Settings
from marketing_api.clock import unix_now
from marketing_api.contact_lookup import read_list
from marketing_api.exchange import Response
from marketing_api.operation import Call
from marketing_api.sandbox.seeded_account import field_ids
from tests.depth import DEEP
from tests.write_back.conftest import MakeDesk
from tests.write_back.desk import QUICK, Desk
from tests.write_back.planner import rows_of
from write_back import consent
from write_back.account_state import Known, Lists, Member
from write_back.consent import LEFT
from write_back.item import Options, State
from write_back.kinds import CONTACTS, NOT_IDEMPOTENT, contact_planning, contact_requests, make_plan
from write_back.outbox.outbox import Outbox
from write_back.outbox.store import OutboxFull

NEWS, SHOP = 1801, 1814
CITY = field_ids(0)[3]
CODES = {"unconfirmed": 0, "active": 1, "unsubscribed": 2, "bounced": 3}
#: Only a look that is over at once: what is not as intended by then has drifted.
AT_ONCE = replace(QUICK, verify_wait_s=0.0)


class Account(Known):
    """What the last readings of the lists showed: a warehouse in memory. `seen`: contact and list → as of the
    last reading, and whether it is still there."""

    seen: dict[tuple[int, int], tuple[Member, bool]]

    @staticmethod
    def empty() -> "Account":
        lists = Lists.from_rows([(NEWS, "News"), (SHOP, "Shop")], [(NEWS, CITY, "City")])
        known = Account(Settings(Path()), "main", ZoneInfo("UTC"), lists, {}, {})
        object.__setattr__(known, "seen", {})
        return known

    def read(self, desk: Desk, list_id: int, *, days_ago: int = 0) -> None:
        found = read_list(desk.client, list_id)
        for key, (member, _) in [*self.seen.items()]:
            self.seen[key] = (member, key[1] != list_id)
        for one in found or ():
            member = Member(one.contact_id, list_id, one.email, CODES.get(one.status or ""), None)
            self.seen[one.contact_id, list_id] = (member, True)
        as_of, read_at = dict(self.as_of), dict(self.read_at)
        as_of[list_id], read_at[list_id] = unix_now(), unix_now() - 86_400 * days_ago
        object.__setattr__(self, "as_of", as_of)
        object.__setattr__(self, "read_at", read_at)

    def _find_members(self, statement: str, keys: Iterable[Any], **_: object) -> dict[Any, list[Member]]:
        wanted, found = set(keys), dict[Any, list[Member]]()
        for member, is_there in self.seen.values():
            key = member.contact_id if statement == "by_id" else (member.email or "").lower()
            is_gone = not is_there
            if key in wanted and (is_gone if statement == "gone" else is_there):
                found.setdefault(key, []).append(member)
        return found

    def shown_fields(self, list_ids: Iterable[int]) -> dict[int, set[str]]:
        return {}


def changes(desk: Desk) -> int:
    return int(desk.control("statuses", since=1 << 30)["changes"])


def raised(desk: Desk, since: int = 0) -> list[tuple[str, int]]:
    """Whom a write made active on which list, though the address was something else there."""
    found = desk.control("statuses", since=since)["items"]
    return [
        (one["email"], one["list_id"])
        for one in found
        if one["after"] == 1 and any(code != 1 for code in one["before"])
    ]


# ---- somebody leaves between two steps


def joined(desk: Desk, email: str, list_id: int = NEWS) -> None:
    desk.control_write("addcontact", email=email, listid=list_id, status="Active")


def plan(known: Known, outbox: Outbox, *rows: Mapping[str, Any], **options: Any) -> Any:
    return make_plan(CONTACTS, rows_of(*rows), known, outbox, Options(**options))


def push(desk: Desk, known: Known, *rows: Mapping[str, Any], **options: Any) -> int:
    return desk.outbox.enqueue_plan(plan(known, desk.outbox, *rows, **options))


@pytest.mark.parametrize("required", ["primary", "variants"])
@pytest.mark.parametrize("how", ["unsubscribed", "bounced"])
@pytest.mark.parametrize(
    "when",
    [
        "never read",
        "before the sync",
        "before the push",
        "before the sending",
        "behind the look-up",
        "behind the write",
    ],
)
def test_whoever_leaves_stays_away(make_desk: MakeDesk, when: str, how: str, required: str) -> None:
    """An old export that says active for everybody, with a new city; some services want a status."""
    desk, known, email = make_desk(switches={"required": required}), Account.empty(), "ann@example.com"
    row = {"email": email, "list": "News", "status": "active", "City": "Bath"}
    joined(desk, email)
    if when == "before the sync":
        desk.control("leave", email=email, status=how)
    if when not in ("never read", "behind the look-up"):
        known.read(desk, NEWS)
    if when in ("never read", "before the push"):
        desk.control("leave", email=email, status=how)
    push_id = push(desk, known, row)
    if when == "before the sending":
        desk.control("leave", email=email, status=how)
    if when == "behind the look-up":
        desk.control("leave", email=email, status=how, after="emailmarketing/getcontactbyemail")
    desk.send()
    if when == "behind the write":
        desk.control("leave", email=email, status=how)
    assert raised(desk) == []
    (person,) = [one for one in desk.written().values() if one["email"] == email]
    assert (person["values"][CITY], person["status"]) == ("Bath", CODES[how])
    desk.verify(push_id, how="all", policy=AT_ONCE)
    assert desk.outbox.retry_items("main", not_idempotent=NOT_IDEMPOTENT) is not None
    desk.send()
    assert raised(desk) == []


def test_whoever_joined_and_left_since_the_sync_is_found_out(desk: Desk) -> None:
    known, email = Account.empty(), "ann@example.com"
    known.read(desk, NEWS)
    joined(desk, email)
    desk.control("leave", email=email)
    push_id = push(
        desk, known, {"email": email, "list": "News"}, {"email": "new@example.com", "list": "News"}
    )
    desk.send()
    assert raised(desk) == []
    assert [(entry.state, entry.message) for entry in desk.outbox.list_entries(push_id)] == [
        (State.SKIPPED, LEFT),
        (State.APPLIED, None),
    ]


def test_the_switch_makes_active_whom_a_row_asks_for_and_is_good_for_one_sending(desk: Desk) -> None:
    known, email = Account.empty(), "ann@example.com"
    joined(desk, email)
    desk.control("leave", email=email)
    known.read(desk, NEWS)
    row = {"email": email, "list": "News", "status": "active"}
    push_id = push(desk, known, row, resubscribe=True)
    desk.send()
    assert raised(desk) == [(email, NEWS)]
    desk.control("leave", email=email)
    assert desk.verify(push_id, how="all", policy=AT_ONCE).drifted == 1
    assert desk.outbox.retry_items("main", push_id, not_idempotent=NOT_IDEMPOTENT).planned == 1
    desk.send()
    assert raised(desk) == [(email, NEWS)], "they have said so once more since"


def test_a_status_that_came_back_is_a_mismatch(desk: Desk) -> None:
    """Only fields were sent; then the read-back shows active whom the look-up had shown unsubscribed."""
    known, email = Account.empty(), "ann@example.com"
    joined(desk, email)
    desk.control("leave", email=email)
    push_id = push(desk, known, {"email": email, "list": "News", "status": "active", "City": "Bath"})
    desk.send()
    (contact_id,) = [one for one, each in desk.written().items() if each["email"] == email]
    desk.control_write("editcontact", id=contact_id, status="Active")
    assert desk.verify(push_id, how="all", policy=AT_ONCE).drifted == 1
    assert [entry.drift for entry in desk.outbox.list_entries(push_id)] == [
        {"status": ["unsubscribed", "active"]}
    ]


def test_a_look_up_that_says_nothing_of_the_status_subscribes_nobody(desk: Desk) -> None:
    """As of a service that hides it: unknown is not active."""
    assert consent.decide_status([None], "active").status is None
    assert consent.decide_status(["9"], "active").status is None


# ---- random histories


class Killed(Exception):
    """The program is ended here."""


class Mortal(Outbox):
    """An outbox whose program can be ended: from then on it takes nothing in, until the next one begins."""

    is_dead = False

    def open_change(self) -> Any:
        if self.is_dead:
            raise OutboxFull("the program has ended")
        return super().open_change()


@dataclass
class Doomed:
    """A client whose program ends at one of its next writes, before or behind it."""

    client: Any
    outbox: Mortal
    left: int
    is_sent: bool

    def __getattr__(self, name: str) -> Any:
        return getattr(self.client, name)

    def write(self, call: Call, **more: Any) -> Response:
        self.left -= 1
        if self.left >= 0:
            return self.client.write(call, **more)  # type: ignore[no-any-return]
        if "before" in more:
            more["before"]()
        if self.is_sent:
            self.client.write(call)
        self.outbox.is_dead = True
        raise Killed


@dataclass
class History:
    """People come, leave, are read, pushed, lost and retried, in an order that a seed decides."""

    desk: Desk
    seed: int
    known: Account
    steps: list[str] = field(default_factory=list)
    granted: Counter[tuple[str, int]] = field(default_factory=Counter)  # who may be raised, and how often
    pushes: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.chance = random.Random(self.seed)
        self.people = [f"p{number}.{self.seed}@example.com" for number in range(3)]
        self.since = changes(self.desk)

    def run(self) -> list[tuple[str, int]]:
        """Who was raised without the switch."""
        desk, pick = self.desk, self.chance.choice
        desk.control(
            "switches",
            **{"required": pick(["primary", "variants"]), "email-found": pick(["object", "array"])},
        )
        for _ in range(self.chance.randint(6, 14)):
            step = pick(
                [
                    self.join,
                    self.leave,
                    self.leave,
                    self.take_off,
                    self.read,
                    self.push,
                    self.push,
                    self.push,
                    self.retry,
                    self.verify,
                ]
            )
            self.steps.append(step.__name__)
            step()
        desk.outbox.cancel_items("main", unknown=True)
        found = Counter(pair for pair in raised(desk, self.since) if pair[0] in self.people)
        return [*(found - self.granted).elements()]

    def join(self) -> None:
        email, list_id = self.chance.choice(self.people), self.chance.choice([NEWS, SHOP])
        if not [one for one in self.desk.people(list_id) if one["email"] == email]:
            before = changes(self.desk)
            self.desk.control_write(
                "addcontact",
                email=email,
                listid=list_id,
                status=self.chance.choice(["Active", "Active", "0"]),
            )
            self.granted.update(raised(self.desk, before))  # of their own accord

    def leave(self) -> None:
        email, how = self.chance.choice(self.people), self.chance.choice(["unsubscribed", "bounced"])
        after = self.chance.choice([None, "getcontactbyemail", "synccontact", "editcontact"])
        self.desk.control(
            "leave", email=email, status=how, **({"after": f"emailmarketing/{after}"} if after else {})
        )

    def take_off(self) -> None:
        email, list_id = self.chance.choice(self.people), self.chance.choice([NEWS, SHOP])
        for one in self.desk.people(list_id):
            if one["email"] == email:
                self.desk.control_write("deletecontact", id=one["id"], listid=list_id)

    def read(self) -> None:
        for list_id in self.chance.choice([[NEWS], [SHOP], [NEWS, SHOP]]):
            self.known.read(self.desk, list_id, days_ago=self.chance.choice([0, 0, 3]))

    def push(self) -> None:
        rows = [self._row(email) for email in self.chance.sample(self.people, self.chance.randint(1, 3))]
        may_raise = self.chance.random() < 0.2
        options = {
            "send_all": self.chance.random() < 0.2,
            **({"resubscribe": True} if may_raise else {}),
        }
        planned = plan(self.known, self.desk.outbox, *rows, **options)
        self.pushes.append(self.desk.outbox.enqueue_plan(planned, options=options))
        if may_raise:
            asked = {row["email"] for row in rows if consent.may_subscribe(row["status"])}
            items = [item for item in planned.items if item.email in asked]
            self.granted.update((item.email or "", int(one)) for item in items for one in item.expected.lists)
        if self.chance.random() < 0.8:
            self.send()

    def _row(self, email: str) -> dict[str, Any]:
        lists, status = (
            self.chance.choice(["News", "Shop", "News,Shop"]),
            self.chance.choice(["active", "active", None, *CODES]),
        )
        city = self.chance.choice([None, "Bath", "York"]) if lists == "News" else None
        return {"email": email, "list": lists, "status": status, "City": city}

    def send(self) -> None:
        desk, outbox = self.desk, self.desk.outbox
        if self.chance.random() < 0.3:
            assert isinstance(outbox, Mortal)
            self.steps.append("killed")
            client: Any = Doomed(desk.client, outbox, self.chance.randint(0, 2), self.chance.random() < 0.5)
            try:
                replace(desk, client=client).send(policy=AT_ONCE)
            except (Killed, OutboxFull):
                outbox.is_dead = False
            return
        desk.send(policy=AT_ONCE)

    def retry(self) -> None:
        self.desk.outbox.retry_items("main", not_idempotent=NOT_IDEMPOTENT)
        self.send()

    def verify(self) -> None:
        if self.pushes:
            self.desk.verify(*self.pushes, how="all", policy=AT_ONCE)


WRITES = ",".join(f"emailmarketing/{name}" for name in ("synccontact", "editcontact"))
LOSSES = dict.fromkeys(("lost-answer", "500-before"), f"0.1@{WRITES}")


def histories(make_desk: MakeDesk, count: int) -> tuple[Counter[str], list[tuple[int, str, int]]]:
    """How often each step was taken; seed, address and list of whoever was raised without the switch."""
    steps, wrong = Counter[str](), list[tuple[int, str, int]]()
    for seed in range(count):
        if seed % 100 == 0:  # lists that grow long would take the time
            desk = make_desk(faults=LOSSES)
            outbox = Mortal(desk.outbox.path)
        history = History(replace(desk, outbox=outbox), seed, Account.empty())
        wrong += [(seed, *each) for each in history.run()]
        steps.update([*history.steps, *["raised with the switch"] * len(raised(desk, history.since))])
        steps["requests"] += len(desk.recorded)
        desk.recorded.clear()
    return steps, wrong


@pytest.mark.slow
@pytest.mark.timeout(7200)
def test_random_histories_raise_nobody_without_the_switch(make_desk: MakeDesk) -> None:
    steps, wrong = histories(make_desk, 1000 if DEEP else 15)
    print(dict(steps))
    assert wrong == []


@pytest.mark.slow
def test_the_histories_find_it_out_when_nobody_decides(
    make_desk: MakeDesk, monkeypatch: pytest.MonkeyPatch
) -> None:
    def obey(present: Collection[str | None], wanted: str | None, **_: Any) -> consent.Decision:
        return consent.Decision(wanted or (None if present else consent.ACTIVE))

    for module in (contact_planning, contact_requests):
        monkeypatch.setattr(module, "decide_status", obey)
    _, wrong = histories(make_desk, 10)
    assert wrong
