"""Contact syncs: people are added to lists, or their status and custom fields change, in as few requests as
possible.

A row is compared list by list with how the contact stands (`account_state`); what differs goes in one
request, unless lists turn out to need different ones when the contact is looked up, which it is wherever it
could be subscribed (`consent`)."""

import hashlib
import math
import re
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from marketing_api.address import normal_form
from marketing_api.contact_lookup import Fetch, Found, Seen, Unread, look_up, read_contacts
from marketing_api.errors import Refused
from marketing_api.exchange import Response
from marketing_api.operation import Call
from marketing_api.records.contacts import EDITCONTACT, STATUSES, SYNCCONTACT
from marketing_api.write_result import new_id, says_absent, unescaped
from write_back.account_state import Content, ListReader, Member, Present
from write_back.consent import ACTIVE, LEFT, REFUSING, Decision, decide, is_raised, subscribes
from write_back.input import values
from write_back.input.columns import Spec
from write_back.input.rows import shown, text_of
from write_back.input.values import STATUS_WORDS, BadValue
from write_back.item import DONE, Effect, EffectKind, Item, Past, State
from write_back.kinds.kind import LIST, Kind, Outgoing
from write_back.outbox.outbox import Entry
from write_back.planning import QUEUED, REACHES_PEOPLE, SENT_BEFORE, UNCHANGED, Planning, bound
from write_back.verification import Compared, ReadBack, Readings

#: Share of the requests that is read back of a `sample`.
SAMPLE = 0.05

_ADDED_ELSEWHERE = "added to a list, though the address is unsubscribed or bounced on another one"
RESUBSCRIBED = "a contact that is unsubscribed, bounced or unconfirmed is made active (or unconfirmed)"
_SENT_AS = {word: STATUS_WORDS[code] for code, word in STATUSES.items()}
_MEANT = {sent: word for word, sent in _SENT_AS.items()}
_CODES = {word: code for code, word in STATUSES.items()}


# ---- rows, read and checked


class Row(NamedTuple):
    """What a row wants. `values`: title of the column → text, of the cells that say something."""

    number: int
    email: str
    key: str
    lists: tuple[int, ...]
    status: str | None
    ip: str | None
    values: dict[str, str]


class _Input:
    """Reads and checks rows, and sorts out those that say again or otherwise what an earlier one says."""

    def __init__(self, planning: Planning) -> None:
        self._lists = planning.known.lists
        self._cells = planning.picked.cells
        empty = "" if planning.options.clear_empty else None
        self._columns = {
            title: (
                f"column {shown(title)}",
                [cell if type(cell) is str else empty if cell is None else text_of(cell) for cell in column],
            )
            for title, column in planning.picked.fields.items()
        }
        self._foreign: dict[int, list[str]] = {}
        self._seen: dict[tuple[str, int], Row] = {}

    def row(self, index: int, number: int) -> Row:
        """Without the lists for which an earlier row says the same; BadValue when nothing is left, they
        disagree, or it cannot be sent."""
        row = self._read(index, number)
        earlier = {
            list_id: seen
            for list_id in row.lists
            if (seen := self._seen.setdefault((row.key, list_id), row)) is not row
        }
        for list_id, seen in earlier.items():
            if (seen.status, seen.ip, seen.values) != (row.status, row.ip, row.values):
                for each in row.lists:  # a bad row is no reason to reject another one
                    if self._seen[row.key, each] is row:
                        del self._seen[row.key, each]
                name = shown(self._lists.names[list_id])
                raise BadValue(
                    f"row {seen.number} says something else about the same address and list {name}: "
                    "keep one of them"
                )
        left = tuple(list_id for list_id in row.lists if list_id not in earlier)
        if not left:
            raise BadValue(f"it says the same as row {next(iter(earlier.values())).number}")
        return row._replace(lists=left) if earlier else row

    def _read(self, index: int, number: int) -> Row:
        email = values.address(self._cells["email"][index])
        lists = self._lists.several(self._cells["list"][index])
        status = self._cells["status"][index] if "status" in self._cells else None
        ip = self._cells["ip_address"][index] if "ip_address" in self._cells else None
        given: dict[str, str] = {}
        for title, (what, column) in self._columns.items():
            if (text := column[index]) is not None:
                given[title] = values.check_text(text, what, values.MAX_FIELD)
        for list_id in lists:
            for title in self._not_of(list_id):
                if given.get(title):
                    raise BadValue(f"list {shown(self._lists.names[list_id])} has no field {shown(title)}")
        return Row(
            number,
            email,
            normal_form(email),
            lists,
            None if status is None else STATUSES[values.status(text_of(status) or "")],
            None if ip is None else values.ip_address(text_of(ip) or ""),
            given,
        )

    def _not_of(self, list_id: int) -> list[str]:
        """Columns that are fields of other lists."""
        if (foreign := self._foreign.get(list_id)) is None:
            own = self._lists.columns_of(list_id, self._columns)
            foreign = self._foreign[list_id] = [title for title in self._columns if title not in own]
        return foreign


# ---- comparing them with how the contact stands


class _Case(NamedTuple):
    """A row and one of its lists. `present`: the statuses that are known of those with the address there, or
    were when they were taken off; `differing`: fields by id."""

    row: Row
    list_id: int
    now: Present
    present: set[str | None]
    decision: Decision
    differing: list[str]

    @property
    def is_same(self) -> bool:
        return self.now.exists and not self.differing and self.decision.status is None

    @property
    def held(self) -> str | None:
        """A status other than active."""
        return next((word for word in self.present if is_raised(word, ACTIVE)), None)


class _Part(NamedTuple):
    """What one list needs: the status to be sent, if any, fields by id, and what is to be remembered of it.
    `held`: as of the case; `is_unsure`: the contact is looked up first."""

    list_id: int
    status: str | None
    fields: dict[str, str]
    content: str
    held: str | None
    is_new: bool
    is_left: bool
    is_unsure: bool


class _Comparison:
    """Compares rows with what is known and was sent, and makes requests of what is left."""

    def __init__(self, planning: Planning, rows: list[Row]) -> None:
        known, titles = planning.known, list(planning.picked.fields)
        self._planning, self._known, self._options, self._rows = planning, known, planning.options, rows
        self._members = known.by_address((row.key for row in rows), with_fields=bool(titles))
        lists = {list_id for row in rows for list_id in row.lists}
        self._field_ids = {list_id: known.lists.columns_of(list_id, titles) for list_id in lists}
        shown_keys = known.shown_fields(lists) if titles else {}
        self._readers = {
            list_id: ListReader(known.lists.fields.get(list_id, {}), shown_keys.get(list_id, set()))
            for list_id in lists
        }
        self._is_compared = False  # whether a row is left since the warehouse shows the person so
        self._past = planning.last([f"{row.key}|{list_id}" for row in rows for list_id in row.lists])
        self._removed = self._removals()
        self._gone = known.refusing(row.key for row in rows)
        for list_id in sorted(lists - known.as_of.keys()):
            planning.warn(
                f"the contacts of list {shown(known.lists.names[list_id])} were never read: all its rows "
                "count as new"
            )

    def _removals(self) -> Mapping[str, Past]:
        """A contact that something took off a list is not there, whatever was read before."""
        there = ((row, member) for row in self._rows for member in self._members.get(row.key, ()))
        subjects = [
            f"{member.contact_id}|{member.list_id}" for row, member in there if member.list_id in row.lists
        ]
        return self._planning.last(
            [*subjects, *self._past], *self._planning.leaving
        )  # an address that was looked up then, by itself

    def _removal(self, row: Row, list_id: int, members: list[Member]) -> Past | None:
        """The last one, when all the contacts that were there were taken off since they were read."""
        if not self._removed:
            return None
        names = [str(member.contact_id) for member in members] or [row.key]
        pasts = [self._removed.get(f"{name}|{list_id}") for name in names]
        as_of = self._known.as_of.get(list_id)
        taken = [past for past in pasts if past is not None and past.is_in_force and past.is_newer(as_of)]
        return max(taken, key=lambda past: past.item_id) if len(taken) == len(pasts) else None

    def run(self) -> None:
        for row in self._rows:
            self._planning.attempt(row.number, self._plan_row, row)
        if self._is_compared:
            self._planning.warn(f"unchanged: as of {self._known.read_on()}, when the contacts were last read")

    def _plan_row(self, row: Row) -> None:
        members = self._members.get(row.key, [])
        groups: dict[str, list[_Part]] = {}
        for list_id in row.lists:
            if (part := self._part(row, list_id, members)) is not None:
                groups.setdefault(part.content, []).append(part)
        for item, group in [
            (self._item(row, group), group) for group in groups.values()
        ]:  # all of them, or none when one is not valid
            is_new = any(part.is_new for part in group)
            self._planning.send(item, is_new=is_new, is_unknown_address=is_new and not members)

    def _part(self, row: Row, list_id: int, members: list[Member]) -> _Part | None:
        """None when there is nothing to do (the row is left) or the service refused it before (it is
        rejected)."""
        past, as_of = self._past.get(f"{row.key}|{list_id}"), self._known.as_of.get(list_id)
        fields = {
            ids[title]: text
            for title, text in row.values.items()
            if title in (ids := self._field_ids[list_id])
        }
        case = self._case(row, list_id, [member for member in members if member.list_id == list_id], fields)
        now, decision = case.now, case.decision
        if reason := self._idle(case):
            self._is_compared |= reason == UNCHANGED
            self._planning.leave(row.number, reason, row.email)
            return None
        is_repeated = self._options.send_all and not decision.is_left
        status = decision.status or (row.status if is_repeated else None)
        content = Content(None if status is None else _CODES[status], fields, row.ip).text
        if (
            past is not None
            and past.is_refused
            and past.content == content
            and (not past.is_drifted or past.is_newer(as_of))
        ):
            self._planning.reject_as_before(row.number, past)
            return None
        self._show(case, members)
        is_active = case.present == {ACTIVE} and not now.is_ours and self._known.is_recent(list_id)
        is_unsure = subscribes(status) or (status is None and not is_active)
        return _Part(
            list_id,
            status,
            fields,
            content,
            case.held,
            is_new=not now.exists,
            is_left=decision.is_left,
            is_unsure=is_unsure,
        )

    def _idle(self, case: _Case) -> str | None:
        """Why there is nothing to send."""
        now = case.now
        if case.decision.is_left and (case.is_same or not now.exists):
            return LEFT
        if not case.is_same or (self._options.send_all and not now.is_queued):
            return None
        return QUEUED if now.is_queued else SENT_BEFORE if now.is_ours else UNCHANGED

    def _case(self, row: Row, list_id: int, there: list[Member], fields: Mapping[str, str]) -> _Case:
        past, as_of, reader = (
            self._past.get(f"{row.key}|{list_id}"),
            self._known.as_of.get(list_id),
            self._readers[list_id],
        )
        now = reader.present(there, past, as_of, self._removal(row, list_id, there))
        differing = [field_id for field_id, text in fields.items() if not reader.is_so(now, field_id, text)]
        read: set[str | None] = {
            None if member.status_code is None else STATUSES.get(member.status_code) for member in there
        }
        present: set[str | None]
        if not now.exists:
            sent = None if past is None or past.state not in DONE else Content.read(past.content).status
            present = {*read, STATUSES.get(sent or 0), *self._gone.get((row.key, list_id), ())} & REFUSING
        elif now.status is None:
            present = read if len(read) > 1 else set()
        else:
            present = {STATUSES.get(now.status)}
        if now.exists and not present:  # who is looked up later
            decision = Decision(row.status)
        else:
            decision = decide(
                present, row.status if now.exists else row.status or ACTIVE, may_raise=self._may_raise(row)
            )
        return _Case(row, list_id, now, present, decision, differing)

    def _may_raise(self, row: Row) -> bool:
        return self._options.resubscribe and row.status is not None

    def _show(self, case: _Case, members: list[Member]) -> None:
        """The change for the sample, and what a person should know before sending it."""
        row, list_id, now, status = case.row, case.list_id, case.now, case.decision.status
        if case.decision.is_left:
            self._planning.count(LEFT)
        elif any(is_raised(word, status) for word in case.present):
            self._planning.count(RESUBSCRIBED)
        if not now.exists:
            self._planning.warn(REACHES_PEOPLE)
            if status == ACTIVE and any(member.status_code in (2, 3) for member in members):
                self._planning.count(_ADDED_ELSEWHERE)
            self._planning.addition(row.number, row.email, self._known.lists.names[list_id], row.values)
            return
        if status is not None:
            self._planning.change(
                row.number,
                row.email,
                "status",
                None if now.status is None else STATUSES.get(now.status),
                status,
            )
        titles = {field_id: title for title, field_id in self._field_ids[list_id].items()}
        for field_id in case.differing:
            self._planning.change(
                row.number,
                row.email,
                titles[field_id],
                now.fields.get(field_id),
                row.values[titles[field_id]],
            )

    def _item(self, row: Row, group: list[_Part]) -> Item:
        first = group[0]
        params = bound(
            SYNCCONTACT,
            email=row.email,
            listid=[part.list_id for part in group],
            status=None if first.status is None else _SENT_AS[first.status],
            ipaddress=row.ip,
            fields=first.fields or None,
        )
        lists = [part.list_id for part in group]
        consent = {
            "look_up": [part.list_id for part in group if part.is_unsure],
            "held": {str(part.list_id): part.held for part in group if part.held is not None},
            "left": [part.list_id for part in group if part.is_left],
            "may_raise": self._may_raise(row),
        }
        return Item(
            self._planning.kind,
            (row.number,),
            SYNCCONTACT,
            params,
            tuple(Effect(f"{row.key}|{part.list_id}", part.content) for part in group),
            {
                **({} if first.status is None else {"status": first.status}),
                "fields": first.fields,
                "lists": lists,
                **{name: value for name, value in consent.items() if value},
            },
            row.email,
        )


# ---- what is sent of an entry, as the contact stands by now

#: How a service says that it wants a status.
_STATUS = re.compile(r"\bstatus\b", re.IGNORECASE)
_VALUES = ("fields[", "ipaddress")


@dataclass
class _Outgoing:
    """The requests of an entry in the making. `by_status`: what is sent as a status, None: none → lists.
    `statuses`: list → the status that it is to keep, None: whichever."""

    entry: Entry
    by_status: dict[str | None, list[str]] = field(default_factory=dict)
    edits: list[Call] = field(default_factory=list)
    statuses: dict[str, str | None] = field(default_factory=dict)
    left: list[int] = field(default_factory=list)

    def add(self, list_id: str, found: Collection[Found], *, is_completed: bool) -> None:
        """A list whose contacts with the address were looked up. Who is there is edited where every sync has
        to say a status."""
        entry, expected = self.entry, self.entry.expected
        held = [expected["held"][list_id]] if list_id in expected.get("held", {}) else []
        present: set[str | None] = {one.status for one in found} or set(held)
        wanted = _MEANT.get(entry.params.get("status", ""))
        decision = decide(present, wanted, may_raise=entry.is_first and expected.get("may_raise", False))
        self.left += [int(list_id)] if decision.is_left else []
        if wanted is None and not found:
            raise Refused(
                f"the contact is no longer on list {list_id}: push it again after a sync, or say a "
                "status in a column"
            )
        if decision.status is not None:
            self.by_status.setdefault(_SENT_AS[decision.status], []).append(list_id)
        elif found and (entry.attempts or any(name.startswith(_VALUES) for name in entry.params)):
            self.statuses[list_id] = next(iter(present - {ACTIVE}), None) if len(present) == 1 else None
            if is_completed:
                values = {name: text for name, text in entry.params.items() if name.startswith(_VALUES)}
                self.edits += [Call(EDITCONTACT, {"id": str(one.contact_id), **values}) for one in found]
            else:
                self.by_status.setdefault(None, []).append(list_id)

    def made(self) -> Outgoing:
        entry, lists = (
            self.entry,
            [int(list_id) for several in self.by_status.values() for list_id in several],
        )
        base = {name: text for name, text in entry.params.items() if name != "status"}
        calls = [
            Call(
                SYNCCONTACT,
                {**base, "listid": ",".join(several), **({} if status is None else {"status": status})},
            )
            for status, several in self.by_status.items()
        ]
        expected = {
            **entry.expected,
            "lists": [*lists, *map(int, self.statuses)],
            "statuses": self.statuses,
            "left": self.left,
        }
        expected["lists"] = sorted(set(expected["lists"]))
        return Outgoing([*calls, *self.edits], LEFT if self.left else UNCHANGED, expected)


# ---- reading back


def _see(reading: ReadBack, entries: list[Entry], others: list[Entry]) -> Readings:
    """`others` that are read by the way count, too, when they are as intended."""
    wanted: defaultdict[int, set[str]] = defaultdict(set)
    for entry in entries:
        for list_id in entry.expected.get("lists", ()):
            wanted[int(list_id)].add(entry.email or "")
    seen = read_contacts(reading.client, wanted)
    chosen = {entry.item_id for entry in entries}
    found: dict[int, Compared | Unread] = {
        entry.item_id: _compared(reading, entry, seen) for entry in entries
    }
    for other in others:
        if (
            other.item_id not in chosen
            and isinstance(compared := _compared(reading, other, seen), Compared)
            and compared.is_as_intended
        ):
            found[other.item_id] = compared
    others[:] = [other for other in others if other.item_id not in found]
    return found


def _compared(reading: ReadBack, entry: Entry, seen: Seen) -> Compared | Unread:
    drift: dict[str, tuple[Any, Any]] = {}
    hidden: set[str] = set()
    for list_id in map(int, entry.expected["lists"]):
        found = seen.of(list_id, entry.email or "")
        if isinstance(found, Unread):
            return found
        status = entry.expected.get("statuses", {}).get(str(list_id), entry.expected.get("status"))
        compared = compare({**entry.expected, "status": status}, found, reading.labels.get(list_id, {}))
        drift |= compared.drift
        hidden |= compared.hidden
    return Compared(drift, frozenset(hidden))


def _form(entry: Entry) -> tuple[frozenset[str], bool]:
    """Requests of one form are taken alike: which parameters they have, and whether they name several
    lists."""
    return frozenset(name.partition("[")[0] for name in entry.params), "," in entry.params.get("listid", "")


def sample(entries: list[Entry], how: str) -> list[Entry]:
    """A function of the items, so that a push that is resumed reads the same ones; it has one of each
    form."""
    surely = [
        entry
        for entry in entries
        if entry.state is State.UNKNOWN or entry.drift or (how != "none" and entry.attempts > 1)
    ]
    if how == "none":
        return surely
    there = {entry.item_id for entry in surely}
    rest = sorted(
        (entry for entry in entries if entry.item_id not in there),
        key=lambda entry: hashlib.blake2b(str(entry.item_id).encode()).digest(),
    )
    if how == "all":
        return surely + rest
    firsts = {_form(entry): entry for entry in reversed(rest)}
    return surely + list(
        {
            entry.item_id: entry for entry in [*rest[: math.ceil(SAMPLE * len(rest))], *firsts.values()]
        }.values()
    )


def compare(expected: Mapping[str, Any], found: Sequence[Found], labels: Mapping[str, str]) -> Compared:
    """One list's contacts with the address against `{"status", "fields"}`; `labels`: field id → label, of
    that list.

    A sync changes every contact with the address in the list, so all of them must be as intended.
    """
    if not found:
        return Compared({"contact": ("there", "not there")})
    drift: dict[str, tuple[Any, Any]] = {}
    hidden: set[str] = set()
    status, wanted = expected.get("status"), expected.get("fields") or {}
    for one in found:
        if status is not None and one.status is None:
            hidden.add("status")
        elif status not in (None, one.status):
            drift["status"] = (status, one.status)
        fields = one.fields_by_id({**dict.fromkeys(wanted, ""), **labels})
        for (
            name,
            value,
        ) in (
            wanted.items()
        ):  # what is empty may be left out, but only where other fields of the list are shown
            if not fields:
                hidden.add(name)
            elif _plain(fields.get(name)) != _plain(value):
                drift[name] = (value, fields.get(name))
    return Compared(drift, frozenset(hidden))


def _plain(value: Any) -> str:
    """As text, blanks and entities made alike; nothing and empty are the same."""
    if value is None or value in ([], {}):
        return ""
    if isinstance(value, bool):
        return "1" if value else "0"
    return " ".join(unescaped(str(value)).split())


class Contacts(Kind):
    """Effects: `address|list id`, with what the sync says. Expected: `{"status": word, "fields": {id: value},
    "lists": [list id]}`, and of whom it could subscribe: `look_up`, lists where they are looked up; `held`,
    list → a status other than active that is known of them; `left`, lists where they keep their status though
    another one was wanted; `statuses`, list → the one that they keep; `may_raise`."""

    name = "contacts"
    columns = Spec(
        {"email": ("email",), "list": LIST, "status": ("status",), "ip_address": ("ip_address",)},
        (("email",), ("list",)),
        takes_fields=True,
    )
    effect = EffectKind.JOINS
    samples_new = False
    unknown_addresses = "new to the warehouse: the service adds them, or updates those that it has by now"

    def plan(self, planning: Planning) -> None:
        """Every row's lists that have something to change."""
        if rows := list(planning.read(_Input(planning).row)):
            _Comparison(planning, rows).run()

    def lacks(self, refusal: Refused, call: Call) -> bool:
        """That the contact does not exist is no response to a sync, which makes it: some services say so
        whatever they refuse (row 5)."""
        words = f"{refusal} {refusal.detail.get('fields')}"
        return "status" not in call.params and (
            says_absent(str(refusal)) or _STATUS.search(words) is not None
        )

    def outgoing(
        self, entry: Entry, contact_ids: Sequence[int], fetch: Fetch, *, is_completed: bool
    ) -> Outgoing:
        """Of each list on which somebody could be subscribed, who is there is looked up first."""
        params, lists = entry.params, entry.params["listid"].split(",")
        is_raising = subscribes(_MEANT.get(params.get("status", "")))
        unsure = (
            lists
            if is_completed or is_raising
            else [str(list_id) for list_id in entry.expected.get("look_up", ())]
        )
        if not unsure:
            return super().outgoing(entry, contact_ids, fetch, is_completed=is_completed)
        made = _Outgoing(
            entry,
            {params.get("status"): sure} if (sure := [each for each in lists if each not in unsure]) else {},
        )
        for list_id in unsure:
            found = [
                one
                for one in look_up(fetch, params["email"], int(list_id))
                if one.list_id in (None, int(list_id))
            ]
            made.add(list_id, found, is_completed=is_completed)
        return made.made()

    def new_contact_id(self, response: Response) -> int | None:
        return new_id(response)

    def read_back(self, reading: ReadBack, entries: list[Entry], how: str) -> None:
        """`all`, a `sample` (5 %, at least one of each form of request, and everything that was ever unknown;
        when one drifted, all of its form) or `none` (but what is unknown still, or has drifted)."""
        subjects = reading.outbox.subjects(entry.item_id for entry in entries)
        current = reading.current(
            [entry for entry in entries if entry.state is not State.VERIFIED], subjects, [CONTACTS]
        )
        left, forms, chosen = (
            list(current),
            {entry.item_id: _form(entry) for entry in current},
            sample(current, how),
        )
        while chosen:
            reading.poll(chosen, lambda waiting: _see(reading, waiting, left))
            drifting = {forms[item_id] for item_id in reading.drifted if item_id in forms}
            chosen = [entry for entry in left if _form(entry) in drifting] if how == "sample" else []


CONTACTS = Contacts()
