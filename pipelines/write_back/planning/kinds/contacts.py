"""Planning contact syncs: which lists of which rows differ from what is known, in as few requests as possible.

Not here: reading the rows (`contact_rows`), how a contact stands at present (`present`).
"""

from __future__ import annotations

from typing import NamedTuple

from marketing_api.operations.contacts import SYNCCONTACT
from marketing_api.records.contacts import STATUSES
from pipelines.write_back.input import values
from pipelines.write_back.input.columns import pick
from pipelines.write_back.input.rows import Rows, shown
from pipelines.write_back.input.values import BadValue
from pipelines.write_back.item import Effect, Item, Kind, Past, Plan
from pipelines.write_back.planning.draft import QUEUED, SENT_BEFORE, UNCHANGED, Draft, Last, bound, is_done, is_newer, is_open, is_refused
from pipelines.write_back.planning.kinds.contact_rows import Input, Row
from pipelines.write_back.planning.kinds.present import Content, Present, Reader
from pipelines.write_back.planning.known import Known, Member
from pipelines.write_back.planning.options import Options

_ADDED_ELSEWHERE = "added to a list, though the address is unsubscribed or bounced on another one"
_RESUBSCRIBED = "a contact that is unsubscribed or bounced is made active"


class _Part(NamedTuple):
    """What one list needs: the status to be sent, if any, fields by id, and what is to be remembered of it."""

    list_id: int
    status: int | None
    fields: dict[str, str]
    content: str
    is_new: bool


def plan(rows: Rows, known: Known, last: Last, options: Options) -> Plan:
    """Every row's lists that have something to change. Raises InputError for columns that cannot be used."""
    picked = pick(rows, Kind.CONTACTS, options, known.lists.field_names())
    draft = Draft(known.account, Kind.CONTACTS, rows)
    for warning in picked.warnings:
        draft.warn(warning)
    wanted = list(Input(draft, known, picked, options).rows())
    if wanted:
        _Planning(draft, known, last, options, list(picked.fields), wanted).run()
    return draft.plan()


class _Planning:
    """Compares rows with what is known and was sent, and makes requests of what is left."""

    def __init__(self, draft: Draft, known: Known, last: Last, options: Options, titles: list[str], rows: list[Row]) -> None:
        self._draft = draft
        self._known = known
        self._options = options
        self._rows = rows
        self._members = known.by_address((row.key for row in rows), with_fields=bool(titles))
        lists = {list_id for row in rows for list_id in row.lists}
        self._field_ids = {list_id: known.lists.columns_of(list_id, titles) for list_id in lists}
        shown_keys = known.shown_fields(lists) if titles else {}
        self._readers = {list_id: Reader(known.lists.fields.get(list_id, {}), shown_keys.get(list_id, set())) for list_id in lists}
        self._is_compared = False  # whether a row is left since the warehouse shows the person so
        self._past = last([f"{row.key}|{list_id}" for row in rows for list_id in row.lists])
        self._removed = self._removals(last)
        for list_id in sorted(lists - known.as_of.keys()):
            draft.warn(f"the contacts of list {shown(known.lists.names[list_id])} were never read: all its rows count as new")

    def _removals(self, last: Last) -> dict[str, Past]:
        """Moves and deletions: a contact that they took off a list is not there, whatever was read before."""
        subjects = [
            f"{member.contact_id}|{member.list_id}"
            for row in self._rows
            for member in self._members.get(row.key, ())
            if member.list_id in row.lists
        ]
        subjects += self._past  # an address that was looked up then is remembered by itself
        found = dict(last(subjects, Kind.MOVES))
        for subject, past in last(subjects, Kind.DELETIONS).items():
            if subject not in found or past.item_id > found[subject].item_id:
                found[subject] = past
        return found

    def _removal(self, row: Row, list_id: int, members: list[Member]) -> Past | None:
        """The last one, when all the contacts that were there were taken off since they were read."""
        if not self._removed:
            return None
        names = [str(member.contact_id) for member in members] or [row.key]
        pasts = [self._removed.get(f"{name}|{list_id}") for name in names]
        as_of = self._known.as_of.get(list_id)
        taken = [past for past in pasts if past is not None and (is_done(past) or is_open(past)) and is_newer(past, as_of)]
        return max(taken, key=lambda past: past.item_id) if len(taken) == len(pasts) else None

    def run(self) -> None:
        for row in self._rows:
            try:
                self._plan_row(row)
            except BadValue as problem:
                self._draft.reject(row.number, str(problem))
        if self._is_compared:
            self._draft.warn(f"unchanged: as of {self._known.read_on()}, when the contacts were last read")

    def _plan_row(self, row: Row) -> None:
        members = self._members.get(row.key, [])
        parts = [part for list_id in row.lists if (part := self._part(row, list_id, members)) is not None]
        if not parts:
            return
        groups: dict[str, list[_Part]] = {}
        for part in parts:
            groups.setdefault(part.content, []).append(part)
        items = [(self._item(row, group), any(part.is_new for part in group)) for group in groups.values()]
        for item, is_new in items:
            self._draft.send(item, is_new=is_new)

    def _part(self, row: Row, list_id: int, members: list[Member]) -> _Part | None:
        """None when there is nothing to do (the row is left) or the service refused it before (it is rejected)."""
        there = [member for member in members if member.list_id == list_id]
        past = self._past.get(f"{row.key}|{list_id}")
        reader = self._readers[list_id]
        as_of = self._known.as_of.get(list_id)
        now = reader.present(there, past, as_of, self._removal(row, list_id, there))
        ids = self._field_ids[list_id]
        fields = {ids[title]: text for title, text in row.values.items() if title in ids}
        differing = [field_id for field_id, text in fields.items() if not reader.is_so(now, field_id, text)]
        is_same = now.exists and not differing and row.status in (None, now.status)
        if is_same and (now.is_queued or not self._options.send_all):
            reason = QUEUED if now.is_queued else SENT_BEFORE if now.is_ours else UNCHANGED
            self._is_compared |= reason == UNCHANGED
            self._draft.leave(row.number, reason, row.email)
            return None
        status = values.ACTIVE if row.status is None and not now.exists else row.status
        content = Content(status, fields, row.ip).text
        if past is not None and is_refused(past) and past.content == content and (not past.is_drifted or is_newer(past, as_of)):
            self._draft.reject_as_before(row.number, past)
            return None
        self._tell(row, list_id, now, differing, members)
        return _Part(list_id, status, fields, content, not now.exists)

    def _tell(self, row: Row, list_id: int, now: Present, differing: list[str], members: list[Member]) -> None:
        """The change for the sample, and what a person should know before sending it."""
        if not now.exists:
            if row.status in (None, values.ACTIVE) and any(member.status_code in (2, 3) for member in members):
                self._draft.count(_ADDED_ELSEWHERE)
            return
        if row.status == values.ACTIVE and now.status in (2, 3):
            self._draft.count(_RESUBSCRIBED)
        if row.status not in (None, now.status):
            old = None if now.status is None else STATUSES.get(now.status)
            self._draft.change(row.number, row.email, "status", old, STATUSES[row.status or 0])
        titles = {field_id: title for title, field_id in self._field_ids[list_id].items()}
        for field_id in differing:
            self._draft.change(row.number, row.email, titles[field_id], now.fields.get(field_id), row.values[titles[field_id]])

    def _item(self, row: Row, group: list[_Part]) -> Item:
        first = group[0]
        params = bound(
            SYNCCONTACT,
            email=row.email,
            listid=[part.list_id for part in group],
            status=None if first.status is None else values.STATUS_WORDS[first.status],
            ipaddress=row.ip,
            fields=first.fields or None,
        )
        lists = [part.list_id for part in group]
        return Item(
            Kind.CONTACTS,
            (row.number,),
            SYNCCONTACT,
            params,
            tuple(Effect(f"{row.key}|{part.list_id}", part.content) for part in group),
            {**({} if first.status is None else {"status": STATUSES[first.status]}), "fields": first.fields, "lists": lists},
            row.email,
        )
