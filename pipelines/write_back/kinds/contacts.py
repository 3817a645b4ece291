"""Planning contact syncs: which lists of which rows differ from what is known, in as few requests as possible.

Not here: what the single cells mean (`values`), comparing with the warehouse (`present`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import NamedTuple

from marketing_api.operations.contacts import SYNCCONTACT
from marketing_api.records.contacts import STATUSES
from pipelines.write_back import values
from pipelines.write_back.columns import Picked, pick
from pipelines.write_back.draft import QUEUED, SENT_BEFORE, UNCHANGED, Draft, bound
from pipelines.write_back.grid import Rows, shown, text_of
from pipelines.write_back.item import Effect, Item, Kind, Past, Plan, State
from pipelines.write_back.kinds.present import Content, Present, Reader
from pipelines.write_back.known import Known, Member
from pipelines.write_back.options import Options
from pipelines.write_back.values import BadValue

Last = Callable[[Collection[str]], Mapping[str, Past]]

_ADDED_ELSEWHERE = "{} row(s) add an address to a list that is unsubscribed or bounced on another one"
_RESUBSCRIBED = "{} row(s) make a contact active that is unsubscribed or bounced"


class _Row(NamedTuple):
    """What a row wants. `values`: title of the column → text, of the cells that say something."""

    number: int
    email: str
    key: str
    lists: tuple[int, ...]
    status: int | None
    ip: str | None
    values: dict[str, str]


class _Part(NamedTuple):
    """What one list needs: the status to be sent, fields by id, and what is to be remembered of it."""

    list_id: int
    status: int
    fields: dict[str, str]
    content: str
    is_new: bool


def plan(rows: Rows, known: Known, last: Last, options: Options) -> Plan:
    """Every row's lists that have something to change. Raises InputError for columns that cannot be used."""
    picked = pick(rows, Kind.CONTACTS, options, known.lists.field_names())
    draft = Draft(known.account, Kind.CONTACTS, rows)
    for warning in picked.warnings:
        draft.warn(warning)
    wanted = list(_Input(draft, known, picked, options).rows())
    if wanted:
        _Planning(draft, known, last, options, list(picked.fields), wanted).run()
    return draft.plan()


class _Input:
    """Reads and checks rows, and sorts out those that say again or otherwise what an earlier one says."""

    def __init__(self, draft: Draft, known: Known, picked: Picked, options: Options) -> None:
        self._draft = draft
        self._lists = known.lists
        self._cells = picked.cells
        empty = "" if options.clear_empty else None
        self._columns = {title: [empty if cell is None else text_of(cell) for cell in column] for title, column in picked.fields.items()}
        self._foreign: dict[int, list[str]] = {}
        self._seen: dict[tuple[str, int], _Row] = {}

    def rows(self) -> Iterator[_Row]:
        for index in self._draft.indexes():
            number = self._draft.rows.numbers[index]
            try:
                row = self._checked(self._read(index, number))
            except BadValue as problem:
                self._draft.reject(number, str(problem))
            else:
                yield row

    def _read(self, index: int, number: int) -> _Row:
        email = values.address(self._cells["email"][index])
        lists = self._lists.several(self._cells["list"][index])
        status = self._cells["status"][index] if "status" in self._cells else None
        ip = self._cells["ip_address"][index] if "ip_address" in self._cells else None
        said = {title: text for title, column in self._columns.items() if (text := column[index]) is not None}
        for title, text in said.items():
            values.check_text(text, f"column {shown(title)}", values.MAX_FIELD)
        for list_id in lists:
            for title in self._not_of(list_id):
                if said.get(title):
                    raise BadValue(f"list {shown(self._lists.names[list_id])} has no field {shown(title)}")
        return _Row(
            number,
            email,
            email.lower(),
            lists,
            None if status is None else values.status(text_of(status) or ""),
            None if ip is None else values.ip_address(text_of(ip) or ""),
            said,
        )

    def _not_of(self, list_id: int) -> list[str]:
        """Columns that are fields of other lists."""
        if (foreign := self._foreign.get(list_id)) is None:
            own = self._lists.columns_of(list_id, self._columns)
            foreign = self._foreign[list_id] = [title for title in self._columns if title not in own]
        return foreign

    def _checked(self, row: _Row) -> _Row:
        """The row without the lists for which an earlier row says the same; BadValue when nothing is left, or they disagree."""
        earlier = {list_id: seen for list_id in row.lists if (seen := self._seen.get((row.key, list_id))) is not None}
        for list_id, seen in earlier.items():
            if (seen.status, seen.ip, seen.values) != (row.status, row.ip, row.values):
                name = shown(self._lists.names[list_id])
                raise BadValue(f"row {seen.number} says something else about the same address and list {name}: keep one of them")
        left = tuple(list_id for list_id in row.lists if list_id not in earlier)
        if not left:
            raise BadValue(f"it says the same as row {next(iter(earlier.values())).number}")
        for list_id in left:
            self._seen[row.key, list_id] = row
        return row._replace(lists=left)


class _Planning:
    """Compares rows with what is known and was sent, and makes requests of what is left."""

    def __init__(self, draft: Draft, known: Known, last: Last, options: Options, titles: list[str], rows: list[_Row]) -> None:
        self._draft = draft
        self._known = known
        self._options = options
        self._rows = rows
        self._members = known.by_address((row.key for row in rows), with_fields=bool(titles))
        lists = {list_id for row in rows for list_id in row.lists}
        self._field_ids = {list_id: known.lists.columns_of(list_id, titles) for list_id in lists}
        shown_keys = known.shown_fields(lists) if titles else {}
        self._readers = {list_id: Reader(known.lists.fields.get(list_id, {}), shown_keys.get(list_id, set())) for list_id in lists}
        self._past = last([f"{row.key}|{list_id}" for row in rows for list_id in row.lists])
        for list_id in sorted(lists - known.as_of.keys()):
            draft.warn(f"the contacts of list {shown(known.lists.names[list_id])} were never read: all its rows count as new")

    def run(self) -> None:
        for row in self._rows:
            try:
                self._plan_row(row)
            except BadValue as problem:
                self._draft.reject(row.number, str(problem))

    def _plan_row(self, row: _Row) -> None:
        members = self._members.get(row.key, [])
        parts = [part for list_id in row.lists if (part := self._part(row, list_id, members)) is not None]
        groups: dict[tuple[int, str], list[_Part]] = {}
        for part in parts:
            groups.setdefault((part.status, part.content), []).append(part)
        items = [(self._item(row, group), any(part.is_new for part in group)) for group in groups.values()]
        for item, is_new in items:
            self._draft.send(item, is_new=is_new)

    def _part(self, row: _Row, list_id: int, members: list[Member]) -> _Part | None:
        """None when there is nothing to do (the row is left) or the service refused it before (it is rejected)."""
        there = [member for member in members if member.list_id == list_id]
        past = self._past.get(f"{row.key}|{list_id}")
        reader = self._readers[list_id]
        as_of = self._known.as_of.get(list_id)
        now = reader.present(there, past, as_of)
        ids = self._field_ids[list_id]
        fields = {ids[title]: text for title, text in row.values.items() if title in ids}
        differing = [field_id for field_id, text in fields.items() if not reader.is_so(now, field_id, text)]
        is_same = now.exists and not differing and row.status in (None, now.status)
        if is_same and (now.is_queued or not self._options.send_all):
            self._draft.leave(row.number, QUEUED if now.is_queued else SENT_BEFORE if now.is_ours else UNCHANGED, row.email)
            return None
        status = self._status(row, now)
        content = Content(status, fields, row.ip).text
        if past is not None and past.state is State.REJECTED and past.content == content:
            self._draft.reject_as_before(row.number, past)
            return None
        self._tell(row, list_id, now, differing, members)
        return _Part(list_id, status, fields, content, not now.exists)

    def _status(self, row: _Row, now: Present) -> int:
        """The row's, else the present one, so that nobody is subscribed again by the way; Active for somebody new."""
        if row.status is not None:
            return row.status
        if not now.exists:
            return values.ACTIVE
        if now.status is None:
            raise BadValue("the contact's present status is not known for sure: say one in a column status")
        return now.status

    def _tell(self, row: _Row, list_id: int, now: Present, differing: list[str], members: list[Member]) -> None:
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

    def _item(self, row: _Row, group: list[_Part]) -> Item:
        first = group[0]
        params = bound(
            SYNCCONTACT,
            email=row.email,
            listid=[part.list_id for part in group],
            status=values.STATUS_WORDS[first.status],
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
            {"status": STATUSES[first.status], "fields": first.fields, "lists": lists},
            row.email,
        )
