"""The item of a contact push: its request, and what verification expects.

A row is compared with the known contacts list by list (`ListComparison`). Lists that need the same
change get one item. Not here: the comparison itself (`contact_planning`)."""

from collections.abc import Sequence
from itertools import chain
from typing import Any, NamedTuple

from msgspec import structs

from marketing_api.records.contacts import EDITCONTACT, STATUSES, SYNCCONTACT
from write_back.account_state import ListReader, Present
from write_back.consent import ACTIVE, Decision, is_raised, may_subscribe
from write_back.item import DONE, BeforePush, Expected, Item, Past
from write_back.planning import bind_parameters

#: Status → what a request sends for it: the service's own word where it has one, else the code.
SENT_AS = {"unconfirmed": "0", ACTIVE: "Active", "unsubscribed": "Disactive", "bounced": "3"}


class ContactRow(NamedTuple):
    """A row of the input. `key`: the address in normal form; `lists`: in a plan, without those for
    which an earlier row says the same; `values`: title of the column → text, without empty
    cells."""

    number: int
    email: str
    key: str
    lists: tuple[int, ...]
    status: str | None
    ip: str | None
    values: dict[str, str]

    @property
    def content(self) -> tuple[str | None, str | None, dict[str, str]]:
        return self.status, self.ip, self.values

    def subject_on(self, list_id: int) -> str:
        return f"{self.key}|{list_id}"


class ListComparison(NamedTuple):
    """A row compared with the contacts that have its address on one list.

    `past`: what was last sent for the address and list; `statuses`: known statuses of the contacts,
    or those that they had when they were taken off the list; `elsewhere`: other list → the person's
    status there; `fields`: field id → value of the row; `differing`: the fields that do not have
    that value yet."""

    list_id: int
    reader: ListReader
    past: Past | None
    now: Present
    contact_ids: list[int]
    statuses: set[str | None]
    elsewhere: dict[int, str]
    decision: Decision
    fields: dict[str, str]
    differing: list[str]

    @property
    def is_same(self) -> bool:
        return self.now.exists and not self.differing and self.decision.status is None

    @property
    def known_statuses(self) -> dict[int, str]:
        """List → a status other than active."""
        here = [(self.list_id, status) for status in self.statuses if status]
        known = [*self.elsewhere.items(), *here]
        return {list_id: status for list_id, status in known if is_raised(status, ACTIVE)}

    def was_accepted(self, content: str) -> bool:
        """Whether the service accepted this content before. It shows other values if the list is
        compared again."""
        past = self.past
        return past is not None and past.state in DONE and past.content == content

    def find_before(self) -> BeforePush:
        """What a revert restores."""
        now = self.now
        values: dict[str, str] = {}
        for field_id in self.fields:
            if self.reader.is_so(now, field_id, ""):
                values[field_id] = ""
            elif field_id in now.fields:
                values[field_id] = now.fields[field_id]
        if now.exists and now.status is not None:
            values["status"] = STATUSES[now.status]
        return BeforePush(now.exists, values)


def make_item(
    kind: str,
    row: ContactRow,
    content: str,
    status: str | None,
    comparisons: Sequence[ListComparison],
    *,
    may_raise: bool,
) -> Item:
    """The item for lists that need the same `content`. Contacts that keep their status are edited
    by id, others are synced by address."""
    expected = _expect_content(content, status, comparisons, may_raise)
    lists = expected.lists
    values: dict[str, Any] = {"ipaddress": row.ip, "fields": expected.fields or None}
    contact_id = None
    if status is None and all(comparison.contact_ids for comparison in comparisons):
        operation = EDITCONTACT
        params = bind_parameters(operation, id=None, **values)
        contact_ids = {one.list_id: one.contact_ids for one in comparisons}
        expected = structs.replace(expected, contact_ids=contact_ids)
        different_ids = {*chain(*contact_ids.values())}
        if len(different_ids) == 1:
            contact_id = different_ids.pop()
    else:
        operation = SYNCCONTACT
        sent_status = SENT_AS.get(status or "")
        params = bind_parameters(
            operation, email=row.email, listid=lists, status=sent_status, **values
        )
        known_statuses: dict[int, str] = {}
        for comparison in comparisons:
            known_statuses |= comparison.known_statuses
        is_looked_up = status is None or may_subscribe(status)
        expected = structs.replace(
            expected, known_statuses=known_statuses, look_up_count=int(is_looked_up)
        )
    return Item(
        kind,
        (row.number,),
        operation.name,
        params,
        {row.subject_on(list_id): content for list_id in lists},
        expected,
        row.email,
        contact_id,
    )


def _expect_content(
    content: str, status: str | None, comparisons: Sequence[ListComparison], may_raise: bool
) -> Expected:
    """What both operations expect."""
    return Expected(
        status=status,
        fields=comparisons[0].fields,
        lists=[one.list_id for one in comparisons],
        left_lists=[one.list_id for one in comparisons if one.decision.is_left],
        may_raise=may_raise,
        is_repeated=any(one.was_accepted(content) for one in comparisons if not one.is_same),
        before={one.list_id: one.find_before() for one in comparisons},
    )
