"""A revert sets back what a push changed, and nothing that somebody else has changed since."""

import copy
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from marketing_api.address import normal_form
from marketing_api.contact_lookup import Found
from marketing_api.errors import Refused
from marketing_api.records.contacts import EDITCONTACT
from tests.write_back.planner import CONTACTS as PEOPLE
from tests.write_back.planner import rows_of
from tests.write_back.plans import a_plan, activity, tag
from write_back.account_state import Known
from write_back.consent import is_raised
from write_back.input.rows import InputError
from write_back.item import Options, Source, State
from write_back.kinds import CONTACTS, TAGS, make_plan
from write_back.outbox.outbox import Outbox
from write_back.reverting import Revert, find_revert

WORDS = {0: "unconfirmed", 1: "active", 2: "unsubscribed", 3: "bounced"}
SENT_WORDS = {"0": "unconfirmed", "active": "active", "disactive": "unsubscribed", "3": "bounced"}
CITY = {1: "11", 2: "21"}
NAMES = ["ann@example.com", "bo@example.com", "cy@example.com", "new@example.com"]


class Killed(Exception):
    """The process ends here."""


@dataclass
class Service:
    """Contacts as the service has them, by id; in place of the client's look-ups, too."""

    contacts: dict[int, dict[str, Any]] = field(default_factory=dict)
    kill_after: int | None = None

    @staticmethod
    def as_read() -> "Service":
        return Service(
            {
                number: {
                    "email": normal_form(email),
                    "list": list_id,
                    "status": WORDS[code],
                    "city": str((fields or {}).get("11", (fields or {}).get("City", ""))).strip(),
                }
                for number, list_id, email, code, fields in PEOPLE
            }
        )

    def find_now(self, email: str) -> tuple[Found, ...]:
        return tuple(
            Found(
                number,
                one["list"],
                email,
                one["status"],
                {CITY[one["list"]]: one["city"]} if one["list"] in CITY else None,
            )
            for number, one in self.contacts.items()
            if one["email"] == normal_form(email)
        )

    def find_on_list(self, email: str, list_id: int) -> list[Found]:
        return [one for one in self.find_now(email) if one.list_id == list_id]

    def deliver(self, outbox: Outbox) -> None:
        """In place of sending: what is open, in its order; what is unknown is repeated."""
        outbox.recover_sent("main")
        for entry in outbox.list_open("main"):
            if entry.state is State.UNKNOWN:
                outbox.settle_item(entry.item_id, State.PLANNED)
            try:
                outgoing = CONTACTS.prepare_requests(entry, (), self)  # type: ignore[arg-type]
            except Refused as refusal:
                outbox.claim_item(entry.item_id)
                outbox.settle_item(entry.item_id, State.REJECTED, message=str(refusal))
                continue
            if not outgoing.calls:
                outbox.settle_item(entry.item_id, State.SKIPPED, message=outgoing.left)
                continue
            outbox.claim_item(entry.item_id, expected=outgoing.expected)
            for call in outgoing.calls:
                self._take(call.operation.name, call.params)
            if self.kill_after is not None:
                self.kill_after -= 1
                if self.kill_after < 0:
                    self.kill_after = None
                    raise Killed
            outbox.settle_item(entry.item_id, State.APPLIED)

    def _take(self, operation: str, params: Any) -> None:
        if operation == EDITCONTACT.name:
            touched = [self.contacts[int(params["id"])]]
        else:
            email, lists = normal_form(params["email"]), list(map(int, params["listid"].split(",")))
            for list_id in lists:
                if not any((one["email"], one["list"]) == (email, list_id) for one in self.contacts.values()):
                    number = 1000 + len(self.contacts)
                    self.contacts[number] = {"email": email, "list": list_id, "status": "active", "city": ""}
            touched = [
                one for one in self.contacts.values() if one["email"] == email and one["list"] in lists
            ]
        for one in touched:
            if "status" in params:
                one["status"] = SENT_WORDS[params["status"].lower()]
            one["city"] = params.get(f"fields[{CITY.get(one['list'])}]", one["city"])


@pytest.fixture
def outbox(tmp_path: Path) -> Iterator[Outbox]:
    with Outbox(tmp_path / "outbox.sqlite") as outbox:
        yield outbox


def plan_revert(known: Known, outbox: Outbox, push_id: int, **options: Any) -> tuple[Revert, Any]:
    push = outbox.find_push(push_id)
    assert push is not None
    revert = find_revert(known, outbox, push, with_tags=options.pop("with_tags", False))
    plan = make_plan(
        CONTACTS if push.kind == CONTACTS else TAGS,
        revert.make_rows(push_id),
        known,
        outbox,
        Options(**options),
    )
    return revert, revert.guard_plan(plan)


ROWS = st.dictionaries(
    st.sampled_from(NAMES),
    st.fixed_dictionaries(
        {"city": st.sampled_from([None, "Bonn", "Ulm"]), "status": st.sampled_from([None, *WORDS.values()])}
    ),
    min_size=1,
)
EDITS = st.dictionaries(st.sampled_from(NAMES), st.sampled_from(["city", "unsubscribed"]))


@settings(max_examples=60, deadline=None)
@given(rows=ROWS, edits=EDITS, resubscribe=st.booleans(), kill_after=st.none() | st.integers(0, 3))
def test_a_revert_restores_what_nobody_changed_since(
    known: Known, rows: dict[str, Any], edits: dict[str, str], resubscribe: bool, kill_after: int | None
) -> None:
    service = Service.as_read()
    original = copy.deepcopy(service.contacts)
    with tempfile.TemporaryDirectory() as folder, Outbox(Path(folder) / "outbox.sqlite") as outbox:
        records = [{"email": name, "list": 1, **row} for name, row in rows.items()]
        plan = make_plan(CONTACTS, rows_of(*records), known, outbox, Options(resubscribe=True))
        push_id = outbox.enqueue_plan(plan)
        service.deliver(outbox)
        pushed = copy.deepcopy(service.contacts)
        for one in service.contacts.values():
            edit = edits.get(one["email"]) if one["list"] == 1 else None
            one |= {"city": "Zug"} if edit == "city" else {"status": edit} if edit else {}
        edited = copy.deepcopy(service.contacts)
        _, reverting = plan_revert(known, outbox, push_id, resubscribe=resubscribe)
        outbox.enqueue_plan(reverting)
        service.kill_after = kill_after
        try:
            service.deliver(outbox)
        except Killed:
            service.deliver(outbox)
        assert not outbox.list_open("main")
    for number, now in service.contacts.items():
        if not resubscribe:
            assert not is_raised(edited[number]["status"], now["status"])
        for name in ("city", "status"):
            was_edited = edited[number][name] != pushed[number][name]
            if was_edited and pushed[number][name] != original.get(number, pushed[number])[name]:
                assert now[name] == edited[number][name], "somebody else has changed it since"
        if number in original and edited[number] == pushed[number]:
            assert now["city"] == original[number]["city"]
            if resubscribe or not is_raised(pushed[number]["status"], original[number]["status"]):
                assert now["status"] == original[number]["status"]
        if number not in original:
            assert now == edited[number], "contacts that were created stay"


def test_created_contacts_are_named_and_stay(known: Known, outbox: Outbox) -> None:
    outbox.enqueue_plan(
        make_plan(CONTACTS, rows_of({"email": "new@example.com", "list": 1}), known, outbox, Options())
    )
    Service.as_read().deliver(outbox)
    _, plan = plan_revert(known, outbox, 1)
    assert (plan.items, plan.row_count) == ([], 0)
    assert plan.warnings[-1].startswith("1 contacts that the push added to a list stay there, with the mails")


def test_what_a_later_push_changed_is_left_and_listed(known: Known, outbox: Outbox) -> None:
    service = Service.as_read()
    for city in ("Bonn", "Ulm"):
        row = {"email": "ann@example.com", "list": 1, "city": city}
        outbox.enqueue_plan(make_plan(CONTACTS, rows_of(row), known, outbox, Options()))
        service.deliver(outbox)
    _, plan = plan_revert(known, outbox, 1)
    assert not plan.items
    assert plan.warnings[-1] == "changed after the push, so not reverted: “City” of ann@example.com on list 1"
    _, plan = plan_revert(known, outbox, 2)
    assert [dict(item.params) for item in plan.items] == [{"fields[11]": "Bonn"}]


def test_values_are_reverted_although_a_later_push_changed_others(known: Known, outbox: Outbox) -> None:
    for changed in ({"city": "Bonn"}, {"status": "unsubscribed"}):
        row = {"email": "ann@example.com", "list": 1, **changed}
        outbox.enqueue_plan(make_plan(CONTACTS, rows_of(row), known, outbox, Options()))
        settle_all(outbox)
    _, plan = plan_revert(known, outbox, 1)
    assert [dict(item.params) for item in plan.items] == [{"fields[11]": "London"}]


def settle_all(outbox: Outbox) -> None:
    for entry in outbox.list_open("main"):
        outbox.claim_item(entry.item_id)
        outbox.settle_item(entry.item_id, State.APPLIED)


def test_tags_that_an_earlier_push_gave_stay(known: Known, outbox: Outbox) -> None:
    ann, ed = "ann@example.com", "ed@example.com"
    outbox.enqueue_plan(a_plan(tag(2, ann)))
    settle_all(outbox)
    outbox.enqueue_plan(a_plan(tag(2, ann), tag(3, ed), tag(4, ed, name="old", action="remove")))
    settle_all(outbox)
    _, listed = plan_revert(known, outbox, 2)
    assert not listed.items
    assert "1 contacts were given the tag “vip”: --tags reverts that" in listed.warnings
    _, plan = plan_revert(known, outbox, 2, with_tags=True)
    assert sorted((item.email, item.operation, item.params["tagname"]) for item in plan.items) == [
        (ed, "emailmarketing/addtag", "old"),
        (ed, "emailmarketing/removetag", "vip"),
    ]
    assert "1 tags that an earlier push had already given: not reverted" in plan.warnings


def test_refused_removal_of_a_tag_is_named_by_a_revert(known: Known, outbox: Outbox) -> None:
    outbox.enqueue_plan(a_plan(tag(2, "ann@example.com")))
    settle_all(outbox)
    outbox.enqueue_plan(a_plan(tag(2, "ann@example.com", action="remove")))
    (refused,) = outbox.list_open("main")
    outbox.claim_item(refused.item_id)
    outbox.settle_item(refused.item_id, State.REJECTED)
    _, plan = plan_revert(known, outbox, 1, with_tags=True)
    assert "the service rejected this before" in plan.bad[0].reason


@pytest.mark.parametrize(("source", "is_warned"), [("activation regulars", True), ("rows.csv", False)])
def test_next_run_of_a_reverted_audience_sync_is_announced(
    known: Known, outbox: Outbox, source: str, is_warned: bool
) -> None:
    plan = replace(a_plan(tag(2, "ann@example.com")), source=Source(source, ""))
    push_id = outbox.enqueue_plan(plan)
    settle_all(outbox)
    _, reverting = plan_revert(known, outbox, push_id, with_tags=True)
    assert {item.operation for item in reverting.items} == {"emailmarketing/removetag"}
    warnings = [text for text in reverting.warnings if text.startswith("the audience sync regulars sends")]
    assert bool(warnings) is is_warned


def test_open_requests_are_not_sent_by_a_revert(known: Known, outbox: Outbox) -> None:
    outbox.enqueue_plan(a_plan(tag(2, "ann@example.com")))
    with pytest.raises(InputError, match="1 request is still open in push 1"):
        plan_revert(known, outbox, 1)


def test_activities_are_never_sent_by_a_revert(known: Known, outbox: Outbox) -> None:
    outbox.enqueue_plan(a_plan(activity(2, 101, "Called")))
    settle_all(outbox)
    with pytest.raises(InputError, match="can't remove the 1 activities"):
        plan_revert(known, outbox, 1)
