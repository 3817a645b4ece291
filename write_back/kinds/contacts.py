"""Contact syncs: people are added to lists, or their status and custom fields change, in as few
requests as possible.

A row is compared list by list with how the contact stands (`account_state`); what differs goes in
one request, unless lists turn out to need different ones when the contact is looked up.

What a row changes decides the operation. `synccontact` adds a contact to lists or changes its
status: the person is looked up on all lists first (`consent`), and the request always says a
status. `editcontact` changes anything else, by the contact's id: it adds nobody, leaves the status,
and reaches the person under a new address, too."""

import hashlib
import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple

from msgspec import structs

from marketing_api.address import normal_form
from marketing_api.contact_lookup import (
    Directory,
    Found,
    Seen,
    Unread,
    is_nobody,
    read_contacts,
    read_found,
)
from marketing_api.errors import Refused
from marketing_api.exchange import Response
from marketing_api.operation import Call
from marketing_api.records.contacts import EDITCONTACT, GETCONTACT, STATUSES, SYNCCONTACT
from marketing_api.write_result import new_id, unescape_html
from write_back.account_state import Content, ListReader, Member, Present
from write_back.consent import (
    ACTIVE,
    LEFT,
    REFUSING,
    Decision,
    decide_status,
    is_raised,
    may_subscribe,
)
from write_back.input import values
from write_back.input.columns import Spec
from write_back.input.rows import show_name, text_of
from write_back.input.values import BadValue
from write_back.item import (
    DONE,
    BeforePush,
    EffectKind,
    Expected,
    Item,
    RevertedValues,
    State,
)
from write_back.kinds.kind import Kind, Outgoing
from write_back.outbox.outbox import Entry
from write_back.planning import (
    QUEUED,
    REACHES_PEOPLE,
    SENT_BEFORE,
    UNCHANGED,
    Planning,
    bind_parameters,
)
from write_back.verification import Compared, ReadBack, Readings

#: Share of the requests that is read back of a `sample_entries`.
SAMPLE = 0.05

RESUBSCRIBED = (
    "a contact that is unsubscribed, bounced or unconfirmed is made active (or unconfirmed)"
)
ADDED_AGAIN = (
    "was taken off the list before: added again, which starts the list's automations once more"
)
#: Why a contact is left as it is by a revert.
CHANGED_SINCE = (
    "it was changed at the service after the push: run `marketing-sync sync` and revert again, "
    "which leaves only what was changed"
)
#: What is sent for a status: the service's own word where it has any, else the code.
_SENT_AS = {"unconfirmed": "0", ACTIVE: "Active", "unsubscribed": "Disactive", "bounced": "3"}
_CODES = {word: code for code, word in STATUSES.items()}


# ---- planning: rows are read, and compared with how the contact stands


class Row(NamedTuple):
    """What a row wants. `lists`: for which no earlier row says the same; `values`: title of the
    column → text, of the cells that say something."""

    number: int
    email: str
    key: str
    lists: tuple[int, ...]
    status: str | None
    ip: str | None
    values: dict[str, str]

    def subject_on(self, list_id: int) -> str:
        return f"{self.key}|{list_id}"


class _Part(NamedTuple):
    """What a row wants of one list, and how the contact stands there. `present`: the statuses that
    are known of those with the address there, or were when they were taken off; `elsewhere`: the
    person's status on other lists, by list; `ids`: the contacts there; `fields`: by id;
    `differing`: those of them that are not so yet."""

    list_id: int
    now: Present
    present: set[str | None]
    elsewhere: dict[int, str]
    ids: list[int]
    decision: Decision
    fields: dict[str, str]
    differing: list[str]

    @property
    def is_same(self) -> bool:
        return self.now.exists and not self.differing and self.decision.status is None

    @property
    def known_statuses(self) -> dict[int, str]:
        """List → a status other than active."""
        known = [*self.elsewhere.items(), *((self.list_id, word) for word in self.present if word)]
        return {list_id: word for list_id, word in known if is_raised(word, ACTIVE)}


class ContactsPlanning(Planning):
    """Reads rows, compares them with what is known and was sent, and makes requests of what is
    left."""

    def __post_init__(self) -> None:
        super().__post_init__()
        empty = "" if self.options.clear_empty else None
        self._columns = {
            title: (
                f"column {show_name(title)}",
                [empty if cell is None else text_of(cell) for cell in column],
            )
            for title, column in self.picked.fields.items()
        }
        self._field_ids: dict[int, dict[str, str]] = {}
        self._readers: dict[int, ListReader] = {}
        self._is_compared = False  # whether a row is left since the warehouse shows the person so

    def plan_rows(self) -> None:
        rows = list(self.read_rows(self._read_row))
        if not rows:
            return
        self._look_up(rows)
        for row in rows:
            self.try_row(row.number, self._plan_row, row)
        if self._is_compared:
            self.add_warning(
                f"unchanged: as of {self.known.read_on()}, when the contacts were last read"
            )

    def _read_row(self, index: int, number: int) -> Row:
        """BadValue when nothing is left, an earlier row says otherwise, or it cannot be sent."""
        cells = self.picked.cells
        lists = self.known.lists
        status, ip = (
            text_of(cells[name][index]) if name in cells else None
            for name in ("status", "ip_address")
        )
        email = values.read_address(cells["email"][index])
        list_ids = lists.find_lists(cells["list"][index])
        texts = self._read_cells(index)
        for list_id in list_ids:
            own = self._fields_of(list_id)
            foreign = next(
                (title for title, text in texts.items() if text and title not in own), None
            )
            if foreign:
                raise BadValue(
                    f"list {show_name(lists.names[list_id])} has no field {show_name(foreign)}"
                )
        key = normal_form(email)
        status = status and values.read_status(status)
        ip = ip and values.ip_address(ip)
        said = {(key, list_id): (status, ip, texts) for list_id in list_ids}
        what = "says something else about the same address and list"
        left = self.not_said(
            number, said, lambda subject: f"{what} {show_name(lists.names[subject[1]])}"
        )
        return Row(number, email, key, tuple(list_id for _, list_id in left), status, ip, texts)

    def _read_cells(self, index: int) -> dict[str, str]:
        """Title of the column → text, of the cells that say something."""
        return {
            title: values.field_value(text, what)
            for title, (what, column) in self._columns.items()
            if (text := column[index]) is not None
        }

    def _fields_of(self, list_id: int) -> dict[str, str]:
        """Title of a column → the list's field that it names."""
        if list_id not in self._field_ids:
            self._field_ids[list_id] = self.known.lists.columns_of(list_id, self._columns)
        return self._field_ids[list_id]

    def _look_up(self, rows: list[Row]) -> None:
        known = self.known
        self._members = known.by_address((row.key for row in rows), with_fields=bool(self._columns))
        lists = {list_id for row in rows for list_id in row.lists}.difference(self._readers)
        shown_keys = known.shown_fields(lists) if self._columns else {}
        self._readers |= {
            list_id: ListReader(known.lists.fields.get(list_id, {}), shown_keys.get(list_id, set()))
            for list_id in lists
        }
        self._past = self.find_last(
            row.subject_on(list_id) for row in rows for list_id in row.lists
        )
        self._gone = known.find_gone(row.key for row in rows)
        everybody = {one.contact_id for members in self._members.values() for one in members}
        self._same = known.by_id(everybody)  # on all their lists, under whichever address
        for list_id in sorted(lists - known.as_of.keys()):
            self.add_warning(
                f"the contacts of list {show_name(known.lists.names[list_id])} were never read: "
                "all its rows count as new"
            )

    def _plan_row(self, row: Row) -> None:
        members = self._members.get(row.key, [])
        groups: dict[str, list[_Part]] = {}
        for list_id in row.lists:
            part = self._compare_list(
                row, list_id, [member for member in members if member.list_id == list_id]
            )
            content = self._plan_content(row, part)
            if content is not None:
                self._note_change(row, part)
                groups.setdefault(content, []).append(part)
        items = [(self._make_item(row, content, parts), parts) for content, parts in groups.items()]
        for item, parts in items:  # all of them, or none when one is not valid
            is_new = not all(part.now.exists for part in parts)
            self.send_item(item, is_new=is_new, is_unknown_address=is_new and not members)

    def _compare_list(self, row: Row, list_id: int, there: list[Member]) -> _Part:
        past = self._past.get(row.subject_on(list_id))
        reader = self._readers[list_id]
        now = reader.find_present(there, past, self.known.as_of.get(list_id))
        ids = self._fields_of(list_id)
        fields = {ids[title]: text for title, text in row.values.items() if title in ids}
        if self.options.fill_only and now.exists:
            fields = reader.find_empty(now, fields)
        differing = [
            field_id for field_id, text in fields.items() if not reader.is_so(now, field_id, text)
        ]
        present = self._find_statuses(row, list_id, now, there)
        elsewhere = self._find_elsewhere(row, list_id)
        decision = self._decide_row(row, present, elsewhere, exists=now.exists)
        contact_ids = [member.contact_id for member in there]
        return _Part(list_id, now, present, elsewhere, contact_ids, decision, fields, differing)

    def _decide_row(
        self, row: Row, present: set[str | None], elsewhere: Mapping[int, str], *, exists: bool
    ) -> Decision:
        if exists and not present:  # who is looked up later
            return Decision(row.status)
        requested = row.status if exists else row.status or ACTIVE
        return decide_status(
            present, requested, elsewhere=elsewhere.values(), may_raise=self._may_raise(row)
        )

    def _find_elsewhere(self, row: Row, list_id: int) -> dict[int, str]:
        """`_Part.elsewhere`, as far as it is known: of several on one list, the one that keeps most
        mails away. Somebody who is on no list has the status with which they were taken off."""
        members = self._members.get(row.key, [])
        everywhere = [
            one for member in members for one in self._same.get(member.contact_id, [member])
        ]
        gone = [one for one in self._gone.get(row.key, ()) if one.status in REFUSING]
        found: dict[int, str] = {}
        for one in everywhere or gone:
            before = found.get(one.list_id)
            if (
                one.list_id != list_id
                and one.status
                and (before is None or is_raised(one.status, before))
            ):
                found[one.list_id] = one.status
        return found

    def _find_statuses(
        self, row: Row, list_id: int, now: Present, there: list[Member]
    ) -> set[str | None]:
        """`_Part.present`; empty for who is there, with a status that nothing tells."""
        if now.exists:
            read = {member.status for member in there}
            return (
                {STATUSES.get(now.status)}
                if now.status is not None
                else read
                if len(read) > 1
                else set()
            )
        past = self._past.get(row.subject_on(list_id))
        sent = (
            Content.from_text(past.content).status
            if past is not None and past.state in DONE
            else None
        )
        gone = (one.status for one in self._gone.get(row.key, ()) if one.list_id == list_id)
        return {STATUSES.get(sent or 0), *gone} & REFUSING

    def _plan_content(self, row: Row, part: _Part) -> str | None:
        """The content of what is sent; None when there is nothing to do (the row is left) or the
        service refused it before (it is rejected)."""
        reason = self._why_idle(row, part)
        if reason:
            self._is_compared |= reason == UNCHANGED
            self.leave_row(row.number, reason, row.email)
            return None
        status = self._plan_status(row, part)
        past = self._past.get(row.subject_on(part.list_id))
        content = Content(_CODES.get(status or ""), part.fields, row.ip).text
        if past is None or past.content != content:
            return content
        # what says so again and again does not send what the service was seen not to keep
        as_of = None if self.options.is_standing else self.known.as_of.get(part.list_id)
        if not past.is_refused_still(as_of):
            return content
        self.reject_as_before(row.number, past)
        return None

    def _why_idle(self, row: Row, part: _Part) -> str | None:
        """Why there is nothing to send."""
        now = part.now
        if part.decision.is_left and (part.is_same or not now.exists):
            return LEFT
        has_content = part.fields or row.ip or row.status
        if not part.is_same or (self.options.send_all and has_content and not now.is_queued):
            return None
        return QUEUED if now.is_queued else SENT_BEFORE if now.is_ours else UNCHANGED

    def _plan_status(self, row: Row, part: _Part) -> str | None:
        """The status to be sent, if any."""
        is_repeated = self.options.send_all and not part.decision.is_left
        return part.decision.status or (row.status if is_repeated else None)

    def _may_raise(self, row: Row) -> bool:
        return self.options.resubscribe and row.status is not None

    def _note_change(self, row: Row, part: _Part) -> None:
        """The change for the sample, and what a person should know before sending it."""
        now = part.now
        status = part.decision.status
        if part.decision.is_left:
            self.count_warning(LEFT)
        elif any(is_raised(word, status) for word in (*part.present, *part.elsewhere.values())):
            self.count_warning(RESUBSCRIBED)
        if not now.exists:
            self._note_new(row, part.list_id)
            return
        if status is not None:
            before = None if now.status is None else STATUSES.get(now.status)
            self.note_change(row.number, row.email, "status", before, status)
        titles = {field_id: title for title, field_id in self._fields_of(part.list_id).items()}
        for field_id in part.differing:
            before = now.fields.get(field_id)
            after = part.fields[field_id]
            self.note_change(row.number, row.email, titles[field_id], before, after)

    def _note_new(self, row: Row, list_id: int) -> None:
        self.add_warning(REACHES_PEOPLE)
        if any(one.list_id == list_id for one in self._gone.get(row.key, ())):
            self.count_warning(ADDED_AGAIN)
        values = (f"{title}: {text}" for title, text in row.values.items() if text)
        said = "; ".join([self.known.lists.names[list_id], *values])
        self.note_change(row.number, row.email, "list", None, said)

    def _make_item(self, row: Row, content: str, parts: list[_Part]) -> Item:
        """The request for lists that need the same."""
        status = self._plan_status(row, parts[0])
        fields = parts[0].fields
        lists = [part.list_id for part in parts]
        values: dict[str, Any] = {"ipaddress": row.ip, "fields": fields or None}
        if status is None and all(part.ids for part in parts):
            ids = {one for part in parts for one in part.ids}
            operation = EDITCONTACT
            params = bind_parameters(EDITCONTACT, id=None, **values)
        else:
            ids = set()
            operation = SYNCCONTACT
            said = _SENT_AS.get(status or "")
            params = bind_parameters(
                SYNCCONTACT, email=row.email, listid=lists, status=said, **values
            )
        return Item(
            self.kind,
            (row.number,),
            operation.name,
            params,
            {row.subject_on(list_id): content for list_id in lists},
            self._make_expected(row, content, status, parts),
            row.email,
            ids.pop() if len(ids) == 1 else None,
        )

    def _find_before(self, part: _Part) -> BeforePush:
        """What a revert restores."""
        now = part.now
        reader = self._readers[part.list_id]
        values = {
            field_id: "" if reader.is_so(now, field_id, "") else now.fields[field_id]
            for field_id in part.fields
            if field_id in now.fields or reader.is_so(now, field_id, "")
        }
        if now.exists and now.status is not None:
            values["status"] = STATUSES[now.status]
        return BeforePush(now.exists, values)

    def _is_repeated(self, row: Row, content: str, parts: list[_Part]) -> bool:
        """Whether the service took the same before, and shows otherwise."""
        pasts = [self._past.get(row.subject_on(part.list_id)) for part in parts if not part.is_same]
        return any(
            past is not None and past.state in DONE and past.content == content for past in pasts
        )

    def _make_expected(
        self, row: Row, content: str, status: str | None, parts: list[_Part]
    ) -> Expected:
        expected = Expected(
            status=status,
            fields=parts[0].fields,
            lists=[part.list_id for part in parts],
            left_lists=[part.list_id for part in parts if part.decision.is_left],
            may_raise=self._may_raise(row),
            is_repeated=self._is_repeated(row, content, parts),
            before={part.list_id: self._find_before(part) for part in parts},
        )
        contact_ids = {part.list_id: part.ids for part in parts if part.ids}
        if status is None and len(contact_ids) == len(parts):
            return structs.replace(expected, contact_ids=contact_ids)
        known_statuses = {
            list_id: word for part in parts for list_id, word in part.known_statuses.items()
        }
        is_looked_up = status is None or may_subscribe(status)
        return structs.replace(
            expected, look_up_count=int(is_looked_up), known_statuses=known_statuses
        )


# ---- what is sent of an entry, as the contact stands by now

_VALUES = ("fields[", "ipaddress")


def _list_requests(entry: Entry, found: Sequence[Found]) -> Outgoing:
    """Its requests, now that the contacts with its address are `found` on all lists."""
    values = _read_values(entry)
    lists: dict[str, list[int]] = {}  # what is sent as a status → lists
    kept_statuses: dict[int, str | None] = {}
    edited: list[Found] = []
    left: list[int] = []
    for list_id in map(int, entry.params["listid"].split(",")):
        here = [one for one in found if one.list_id == list_id]
        present, decision = _decide_list(entry, list_id, found)
        if decision.is_left:
            left.append(list_id)
        if decision.status is not None:
            lists.setdefault(_SENT_AS[decision.status], []).append(list_id)
        elif here and values:
            is_one = len(present) == 1
            kept_statuses[list_id] = next(iter(present - {ACTIVE}), None) if is_one else None
            edited += here
    expected = structs.replace(
        entry.expected,
        lists=sorted({*chain(*lists.values()), *kept_statuses}),
        kept_statuses=kept_statuses,
        left_lists=left,
    )
    if entry.is_first:
        expected = structs.replace(expected, before=_find_before_now(entry, found))
    syncs = _list_syncs(entry, lists)
    edits = _list_edits(values, dict.fromkeys(one.contact_id for one in edited))
    return Outgoing([*syncs, *edits], LEFT if left else UNCHANGED, expected)


def _list_syncs(entry: Entry, lists: Mapping[str, Sequence[int]]) -> Iterator[Call]:
    """One request for each status, with the lists that get it."""
    for status, list_ids in lists.items():
        listid = ",".join(map(str, list_ids))
        yield Call(SYNCCONTACT, {**entry.params, "listid": listid, "status": status})


def _find_before_now(entry: Entry, found: Sequence[Found]) -> dict[int, BeforePush]:
    """`before` as planned, with who is on the lists now, and with which status."""
    before: dict[int, BeforePush] = {}
    for list_id, planned in entry.expected.before.items():
        statuses = {one.status for one in found if one.list_id == list_id}
        values = {name: text for name, text in planned.values.items() if name != "status"}
        status = next(iter(statuses)) if len(statuses) == 1 else None
        if status is not None:
            values["status"] = status
        before[list_id] = BeforePush(bool(statuses), values)
    return before


def _check_unchanged(entry: Entry, reverted: RevertedValues, found: Sequence[Found]) -> None:
    """Raises Refused unless each value is what the reverted push sent, or already set back."""
    expected = entry.expected
    (list_id,) = expected.lists
    here = [one for one in found if one.list_id == list_id]
    labels = reverted.labels
    changed = compare_contacts(here, labels, reverted.status, reverted.fields).drift
    left = compare_contacts(here, labels, expected.status, expected.fields).drift
    if changed.keys() & left.keys():
        raise Refused(CHANGED_SINCE)


def _read_values(entry: Entry) -> dict[str, str]:
    return {name: text for name, text in entry.params.items() if name.startswith(_VALUES)}


def _list_edits(values: Mapping[str, str], ids: Iterable[int]) -> Iterator[Call]:
    for contact_id in ids:
        yield Call(EDITCONTACT, {"id": str(contact_id), **values})


def _decide_list(
    entry: Entry, list_id: int, found: Sequence[Found]
) -> tuple[set[str | None], Decision]:
    """By the statuses of those who were found, or what was known of them when it was planned."""
    known_statuses = entry.expected.known_statuses
    requested = entry.params.get("status")
    here = {one.status for one in found if one.list_id == list_id}
    if requested is None and not here:
        raise Refused(
            f"the contact is no longer on list {list_id}: it was taken off, or has another address "
            "by now"
        )
    present = here or ({known_statuses[list_id]} if list_id in known_statuses else set())
    elsewhere = [one.status for one in found if one.list_id != list_id]
    return present, decide_status(
        present,
        values.STATUS_WORDS.get((requested or "").lower()),
        elsewhere=elsewhere if found else list(known_statuses.values()),
        may_raise=entry.is_first and entry.expected.may_raise,
    )


# ---- reading back


def _read_back(reading: ReadBack, entries: list[Entry]) -> Readings:
    addresses: defaultdict[int, set[str]] = defaultdict(set)
    for entry in entries:
        for list_id in entry.expected.lists:
            addresses[list_id].add(entry.email or "")
    seen = read_contacts(reading.client, addresses)
    return {entry.item_id: _compare_entry(reading, entry, seen) for entry in entries}


def _compare_entry(reading: ReadBack, entry: Entry, seen: Seen) -> Compared | Unread:
    drift: dict[str, tuple[Any, Any]] = {}
    hidden: set[str] = set()
    expected = entry.expected
    for list_id in expected.lists:
        found = seen.contacts_of(list_id, entry.email or "")
        if not found and list_id in expected.contact_ids:
            found = _by_id(reading, expected.contact_ids[list_id])
        if isinstance(found, Unread):
            return found
        labels = reading.labels.get(list_id, {})
        status = expected.kept_statuses.get(list_id, expected.status)
        compared = compare_contacts(found, labels, status, expected.fields)
        drift |= compared.drift
        hidden |= compared.hidden
    return Compared(drift, frozenset(hidden))


def _by_id(reading: ReadBack, ids: Iterable[int]) -> list[Found] | Unread:
    """The contacts, whose address may be another one by now."""
    found: list[Found] = []
    for response in reading.client.fetch_many(GETCONTACT.bind(id=one) for one in ids):
        if isinstance(response, Response):
            found += read_found(response)
        elif not (isinstance(response.error, Refused) and is_nobody(response.error)):
            return Unread(str(response.error))
    return found


def sample_entries(entries: list[Entry], how: str) -> list[Entry]:
    """A function of the items, so that a push that is resumed reads the same ones; it has each that
    was sent before without effect."""
    chosen: list[Entry] = []
    rest: list[Entry] = []
    for entry in entries:
        is_doubtful = entry.state is State.UNKNOWN or entry.drift or entry.expected.is_repeated
        is_chosen = is_doubtful or (how != "none" and entry.attempts > 1)
        (chosen if is_chosen else rest).append(entry)
    rest.sort(key=lambda entry: hashlib.blake2b(str(entry.item_id).encode()).digest())
    share = {"all": 1.0, "sample": SAMPLE, "none": 0.0}[how]
    return [*chosen, *rest[: math.ceil(share * len(rest))]]


def compare_contacts(
    found: Sequence[Found],
    labels: Mapping[str, str],
    status: str | None,
    expected_fields: Mapping[str, str],
) -> Compared:
    """One list's contacts with the address against the status and the fields (by id) that are
    expected; `labels`: field id → label, of that list.

    A sync changes every contact with the address in the list, so all of them must be as intended.
    """
    if not found:
        return Compared({"contact": ("there", "not there")})
    drift: dict[str, tuple[Any, Any]] = {}
    hidden: set[str] = set()
    for one in found:
        if status is not None and one.status is None:
            hidden.add("status")
        elif status not in (None, one.status):
            drift["status"] = (status, one.status)
        fields = one.fields_by_id({**dict.fromkeys(expected_fields, ""), **labels})
        # what is empty may be left out, but only where other fields of the list are shown
        if not fields:
            hidden |= expected_fields.keys()
            continue
        drift |= {
            name: (value, fields.get(name))
            for name, value in expected_fields.items()
            if _comparable_text(fields.get(name)) != _comparable_text(value)
        }
    return Compared(drift, frozenset(hidden))


def _comparable_text(value: Any) -> str:
    """As text, blanks and entities made alike; nothing and empty are the same."""
    if value is None or value in ([], {}):
        return ""
    if isinstance(value, bool):
        return "1" if value else "0"
    return " ".join(unescape_html(str(value)).split())


class Contacts(Kind):
    """Effects: `address|list id`, with what the request says."""

    columns = Spec(
        {
            "email": ("email",),
            "list": ("list_id", "list"),
            "status": ("status",),
            "ip_address": ("ip_address",),
        },
        (("email",), ("list",)),
        takes_fields=True,
    )
    effect = EffectKind.JOINS
    planning = ContactsPlanning
    unknown_addresses = (
        "new to the warehouse: the service adds them, or updates the ones that it has by now"
    )

    def prepare_requests(
        self, entry: Entry, contact_ids: Sequence[int], directory: Directory
    ) -> Outgoing:
        """Whoever could be subscribed is looked up first; so is who is reverted."""
        reverted = entry.expected.reverted
        if reverted is not None:
            _check_unchanged(entry, reverted, directory.find_now(entry.email or ""))
        if entry.operation == EDITCONTACT.name:
            ids = chain(*entry.expected.contact_ids.values())
            return Outgoing(list(_list_edits(_read_values(entry), dict.fromkeys(ids))))
        status = entry.params.get("status")
        if status is not None and not may_subscribe(values.STATUS_WORDS.get(status.lower())):
            return super().prepare_requests(entry, contact_ids, directory)
        return _list_requests(entry, directory.find_now(entry.email or ""))

    def new_contact_id(self, response: Response) -> int | None:
        return new_id(response)

    def read_back(self, reading: ReadBack, entries: list[Entry], how: str) -> None:
        """`all`, a `sample` (5 %, and everything that was ever unknown; all when one of them has
        drifted) or `none` (but what is unknown still, or has drifted)."""
        left = reading.drop_outdated(
            [entry for entry in entries if entry.state is not State.VERIFIED]
        )
        chosen = sample_entries(left, how)
        reading.poll_entries(chosen, lambda waiting: _read_back(reading, waiting))
        read = {entry.item_id for entry in chosen}
        if how == "sample" and not reading.drifted.isdisjoint(read):
            rest = [entry for entry in left if entry.item_id not in read]
            reading.poll_entries(rest, lambda waiting: _read_back(reading, waiting))


CONTACTS = Contacts("contacts")
