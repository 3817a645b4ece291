"""Planning activities: each is written exactly once, so whatever may be there already is not sent again, not even with `--all`.

Not here: recognizing activities whose answer was lost (`reconcile`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

import msgspec

from marketing_api.operations.contacts import ADDACTIVITY
from marketing_api.write_result import unescaped
from pipelines.write_back.input import values
from pipelines.write_back.input.columns import pick
from pipelines.write_back.input.grid import Rows, text_of
from pipelines.write_back.input.moments import Moment, moment
from pipelines.write_back.input.values import BadValue
from pipelines.write_back.item import Effect, Item, Kind, Past, Plan
from pipelines.write_back.planning.draft import QUEUED, SENT_BEFORE, Draft, Last, bound, is_done, is_open, is_refused
from pipelines.write_back.planning.kinds.people import People, Person, Who, read_who
from pipelines.write_back.planning.known import Entry, Known
from pipelines.write_back.planning.options import Options

IN_TIMELINE = "already in the timeline"
_TWICE = "the local time is one that the clocks show twice; the first of the two is taken"
_SEVERAL = "the address has several contacts; the activity goes to one of them, active ones first, then the oldest"


class _Row(NamedTuple):
    number: int
    who: Who
    description: str
    moment: Moment


class _Wanted(NamedTuple):
    """`contact_id`: None when it has to be looked up."""

    row: _Row
    person: Person
    contact_id: int | None

    def subject(self, name: object) -> str:
        return f"{name}|{self.row.moment.wall}|{self.row.description}"

    @property
    def own(self) -> str:
        return self.subject(self.person.address if self.contact_id is None else self.contact_id)

    @property
    def effects(self) -> tuple[Effect, ...]:
        """An activity for an address is remembered by it as well: its contacts may be known only later, or be others. The content
        is the contact that it went to.
        """
        goes_to = "" if self.contact_id is None else str(self.contact_id)
        own = (Effect(self.own, goes_to),)
        return own if self.person.who.contact_id is not None or self.contact_id is None else (*own, self._by_address(goes_to))

    def _by_address(self, goes_to: str) -> Effect:
        return Effect(self.subject(self.person.address), goes_to)


def plan(rows: Rows, known: Known, last: Last, options: Options) -> Plan:
    """What was not sent and is not in a timeline yet. Raises InputError for columns that cannot be used."""
    picked = pick(rows, Kind.ACTIVITIES, options)
    draft = Draft(known.account, Kind.ACTIVITIES, rows)
    for warning in picked.warnings:
        draft.warn(warning)
    read: list[_Row] = []
    for index in draft.indexes():
        try:
            who = read_who(picked.cells, index)
            description = _description(text_of(picked.cells["description"][index]))
            read.append(_Row(rows.numbers[index], who, description, moment(picked.cells["datetime"][index], known.zone)))
        except BadValue as problem:
            draft.reject(rows.numbers[index], str(problem))
    wanted = list(_once(draft, _resolved(draft, known, read)))
    left = list(_not_sent(draft, last, wanted))
    for each in _not_in_timelines(draft, known, left):
        _send(draft, each)
    return draft.plan()


def _description(text: str | None) -> str:
    if text is None:
        raise BadValue("the description is missing")
    return values.check_text(text, "the description", values.MAX_DESCRIPTION)


def _resolved(draft: Draft, known: Known, rows: list[_Row]) -> Iterator[_Wanted]:
    people = People(known, (row.who for row in rows))
    for row in rows:
        try:
            person = people.person(row.who)
        except BadValue as problem:
            draft.reject(row.number, str(problem))
        else:
            yield _Wanted(row, person, person.ids[0] if person.ids else None)


def _once(draft: Draft, wanted: Iterable[_Wanted]) -> Iterator[_Wanted]:
    """Without rows that say what an earlier one says."""
    seen: dict[str, int] = {}
    for each in wanted:
        first = seen.setdefault(each.own, each.row.number)
        if first != each.row.number:
            draft.reject(each.row.number, f"it says the same as row {first}: an activity is written once")
        else:
            yield each


def _not_sent(draft: Draft, last: Last, wanted: list[_Wanted]) -> Iterator[_Wanted]:
    past = last(list(dict.fromkeys(subject for each in wanted for subject in _subjects(each)))) if wanted else {}
    for each in wanted:
        pasts = list(_pasts(each, past))
        done, queued = any(map(is_done, pasts)), any(map(is_open, pasts))
        refused = next((one for one in pasts if is_refused(one)), None)
        if done or queued:
            draft.leave(each.row.number, SENT_BEFORE if done else QUEUED, each.person.email, each.contact_id)
        elif refused is not None:
            draft.reject_as_before(each.row.number, refused)
        else:
            yield each


def _subjects(each: _Wanted) -> Iterator[str]:
    yield from (each.subject(name) for name in (*each.person.ids, each.person.address) if name is not None)


def _pasts(each: _Wanted, past: Mapping[str, Past]) -> Iterator[Past]:
    """What was done for any contact of the address; for a row that names the contact, only what went to that one or may have."""
    if each.person.who.contact_id is None:
        yield from (past[subject] for subject in _subjects(each) if subject in past)
        return
    if (own := past.get(each.own)) is not None:
        yield own
    by_address = past.get(each.subject(each.person.address))
    if by_address is not None and by_address.content in ("", str(each.contact_id)):
        yield by_address


def _not_in_timelines(draft: Draft, known: Known, wanted: list[_Wanted]) -> Iterator[_Wanted]:
    entries: dict[tuple[int, int], list[Entry]] = {}
    moments = {(each.contact_id, at) for each in wanted if each.contact_id is not None for at in each.row.moment[1:]}
    for entry in known.timelines(moments):
        entries.setdefault((entry.contact_id, entry.at // 60), []).append(entry)
    for each in wanted:
        near = [entry for at in set(each.row.moment[1:]) for entry in entries.get((each.contact_id or 0, at // 60), ())]
        if any(_is_shown_by(each, entry) for entry in near):
            draft.leave(each.row.number, IN_TIMELINE, each.person.email, each.contact_id)
        else:
            yield each


def _is_shown_by(each: _Wanted, entry: Entry) -> bool:
    """The same text as snippet or detail, at the same second, or minute when the entry has no seconds."""
    is_then = entry.at in each.row.moment[1:] or entry.at % 60 == 0
    return is_then and _plain(each.row.description) in {_plain(text) for text in _texts(entry)}


def _plain(text: str) -> str:
    return " ".join(unescaped(text).split())


def _texts(entry: Entry) -> Iterator[str]:
    yield entry.snippet or ""
    details = msgspec.json.decode(entry.details) if entry.details else []
    for detail in details if isinstance(details, list) else []:
        if isinstance(detail, dict) and isinstance(value := detail.get("value"), str):
            yield value


def _send(draft: Draft, each: _Wanted) -> None:
    row, person = each.row, each.person
    must_look_up = each.contact_id is None
    try:
        params = bound(ADDACTIVITY, lacks_id=must_look_up, id=each.contact_id, description=row.description, datetime=row.moment.wall)
    except BadValue as problem:
        draft.reject(row.number, str(problem))
        return
    if row.moment.is_twice:
        draft.count(_TWICE)
    if person.who.contact_id is None and len(person.ids) > 1:
        draft.count(_SEVERAL)
    expected = {"description": row.description, "at": row.moment.at}
    item = Item(Kind.ACTIVITIES, (row.number,), ADDACTIVITY, params, each.effects, expected, person.email, each.contact_id, must_look_up)
    draft.send(item, is_new=True)
    draft.change(row.number, person.shown, "activity", None, f"{row.moment.wall} {row.description}"[:200])
