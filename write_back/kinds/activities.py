"""Activities: each is written into a timeline exactly once, so whatever may be there already is not sent
again, not even with `--all`.

One whose response was lost is looked for in the contact's timeline before anything is sent again; everything
that was ever sent to the contact takes part in that, so that no entry is counted twice. Not here: which entry
is whose (`unknown_outcomes`)."""

import math
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from typing import NamedTuple

from marketing_api.contact_lookup import Fetch, Timeline, Unread, fetch_timelines, read_timeline
from marketing_api.records.contacts import ADDACTIVITY, TIMELINE
from marketing_api.write_result import unescaped
from write_back.account_state import Event, Person, Who, read_who
from write_back.input import values
from write_back.input.columns import Spec
from write_back.input.rows import text_of
from write_back.input.values import BadValue, Moment, moment
from write_back.item import Effect, EffectKind, Item, Past, State
from write_back.kinds.kind import BY_WHO, WHO, Kind
from write_back.outbox.outbox import Entry, Outbox
from write_back.planning import QUEUED, SENT_BEFORE, Planning, bound, resolve
from write_back.unknown_outcomes import Presence, look_for, wanted
from write_back.verification import Compared, ReadBack, Readings

IN_TIMELINE = "already in the timeline"
_TWICE = "the local time is one that the clocks show twice; the first of the two is taken"
_SEVERAL = (
    "the address has several contacts; the activity goes to one of them, active ones first, then the oldest"
)


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
    def subjects(self) -> list[str]:
        return list(map(self.subject, self.person.names))

    @property
    def own(self) -> str:
        return self.subject(self.person.address if self.contact_id is None else self.contact_id)

    @property
    def effects(self) -> tuple[Effect, ...]:
        """An activity for an address is remembered by it as well: its contacts may be known only later, or be
        others. The content is the contact that it went to."""
        goes_to = "" if self.contact_id is None else str(self.contact_id)
        names = [self.own]
        if self.person.who.contact_id is None and self.contact_id is not None:
            names.append(self.subject(self.person.address))
        return tuple(Effect(name, goes_to) for name in names)


def _once(planning: Planning) -> Iterator[_Wanted]:
    """The rows with whom they are about, without those that say what an earlier one says."""
    cells, zone = planning.picked.cells, planning.known.zone

    def read(index: int, number: int) -> _Row:
        who, description = read_who(cells, index), text_of(cells["description"][index])
        if description is None:
            raise BadValue("the description is missing")
        values.check_text(description, "the description", values.MAX_DESCRIPTION)
        return _Row(number, who, description, moment(cells["datetime"][index], zone))

    seen: dict[str, int] = {}
    for row, person in resolve(planning, list(planning.read(read))):
        each = _Wanted(row, person, person.ids[0] if person.ids else None)
        if (first := seen.setdefault(each.own, row.number)) != row.number:
            planning.reject(row.number, f"it says the same as row {first}: an activity is written once")
        else:
            yield each


def _not_sent(planning: Planning, wanted: list[_Wanted]) -> Iterator[_Wanted]:
    past = planning.last(subject for each in wanted for subject in each.subjects) if wanted else {}
    for each in wanted:
        pasts = list(_pasts(each, past))
        is_done, is_queued = any(one.is_done for one in pasts), any(one.is_open for one in pasts)
        refused = next((one for one in pasts if one.is_refused), None)
        if is_done or is_queued:
            planning.leave(
                each.row.number, SENT_BEFORE if is_done else QUEUED, each.person.email, each.contact_id
            )
        elif refused is not None:
            planning.reject_as_before(each.row.number, refused)
        else:
            yield each


def _pasts(each: _Wanted, past: Mapping[str, Past]) -> Iterator[Past]:
    """What was done for any contact of the address; for a row that names the contact, only what went to that
    one or may have."""
    if each.person.who.contact_id is None:
        yield from (past[subject] for subject in each.subjects if subject in past)
        return
    if (own := past.get(each.own)) is not None:
        yield own
    by_address = past.get(each.subject(each.person.address))
    if by_address is not None and by_address.content in ("", str(each.contact_id)):
        yield by_address


def _not_in_timelines(planning: Planning, wanted: list[_Wanted]) -> Iterator[_Wanted]:
    events: dict[tuple[int, int], list[Event]] = {}
    known = {
        (each.contact_id, at) for each in wanted if each.contact_id is not None for at in each.row.moment[1:]
    }
    for event in planning.known.timelines(known):
        events.setdefault((event.contact_id, event.at // 60), []).append(event)
    for each in wanted:
        moments, text = set(each.row.moment[1:]), _plain(each.row.description)
        near = [event for at in moments for event in events.get((each.contact_id or 0, at // 60), ())]
        # the same text as snippet or detail, at the same second, or minute when the event has no seconds
        if any(
            (event.at in moments or event.at % 60 == 0) and text in map(_plain, event.texts) for event in near
        ):
            planning.leave(each.row.number, IN_TIMELINE, each.person.email, each.contact_id)
        else:
            yield each


def _plain(text: str) -> str:
    return " ".join(unescaped(text).split())


def _send(planning: Planning, each: _Wanted) -> None:
    row, person = each.row, each.person
    must_look_up = each.contact_id is None
    params = bound(
        ADDACTIVITY,
        lacks_id=must_look_up,
        id=each.contact_id,
        description=row.description,
        datetime=row.moment.wall,
    )
    if row.moment.is_twice:
        planning.count(_TWICE)
    if person.who.contact_id is None and len(person.ids) > 1:
        planning.count(_SEVERAL)
    expected = {"description": row.description, "at": row.moment.at}
    item = Item(
        planning.kind,
        (row.number,),
        ADDACTIVITY,
        params,
        each.effects,
        expected,
        person.email,
        each.contact_id,
        must_look_up,
    )
    planning.send(item, is_new=True, is_unknown_address=must_look_up)
    planning.change(row.number, person.shown, "activity", None, f"{row.moment.wall} {row.description}"[:200])


# ---- reading back, and looking for lost responses


def _see(reading: ReadBack, entries: list[Entry]) -> Readings:
    """Each contact's timeline once. What the service cut off is neither there nor missing."""
    by_contact: defaultdict[int, list[Entry]] = defaultdict(list)
    for entry in entries:
        if entry.contact_id is not None:
            by_contact[entry.contact_id].append(entry)
    found: dict[int, Compared | Unread] = {}
    for contact_id, timeline in fetch_timelines(reading.client, by_contact):
        several = by_contact[contact_id]
        if isinstance(timeline, Unread):
            found.update((entry.item_id, timeline) for entry in several)
            continue
        presence = _presence(reading.outbox, several[0].account, contact_id, timeline)
        found.update(
            (entry.item_id, _READ[presence.get(entry.item_id, Presence.ABSENT)]) for entry in several
        )
    return found


_READ: Mapping[Presence, Compared | Unread] = {
    Presence.THERE: Compared(),
    Presence.ABSENT: Compared({"activity": ("there", "not there")}),
    Presence.HIDDEN: Unread("the service does not show the timeline as far back"),
}


def _presence(
    outbox: Outbox, account: str, contact_id: int, timeline: Timeline, settled_before: float = math.inf
) -> dict[int, Presence]:
    ours = outbox.sent_to(account, ACTIVITIES, contact_id)
    return look_for([wanted(entry, settled_before) for entry in ours], timeline)


class Activities(Kind):
    """Effects: `who|time|description`, with the contact it went to. Expected: `{"description", "at": unix
    seconds}`."""

    name = "activities"
    columns = Spec(
        {**WHO, "description": ("description",), "datetime": ("datetime",)},
        (BY_WHO, ("description",), ("datetime",)),
    )
    effect = EffectKind.NOTES

    def plan(self, planning: Planning) -> None:
        """What was not sent and is not in a timeline yet."""
        for each in _not_in_timelines(planning, list(_not_sent(planning, list(_once(planning))))):
            planning.attempt(each.row.number, _send, planning, each)

    def ambiguity(self, entry: Entry, contact_id: int | None) -> tuple[int, str, str]:
        """The same contact, minute and text."""
        return contact_id or 0, entry.params["datetime"][:16], " ".join(entry.params["description"].split())

    def read_back(self, reading: ReadBack, entries: list[Entry], how: str) -> None:
        """Only with `all`, since each takes a timeline; and what has drifted."""
        sent = [entry for entry in entries if entry.state is State.APPLIED and (how == "all" or entry.drift)]
        reading.poll(sent, lambda waiting: _see(reading, waiting))

    def look(
        self,
        outbox: Outbox,
        fetch: Fetch,
        account: str,
        contact_id: int,
        item_ids: Collection[int],
        settled_before: float,
    ) -> Mapping[int, Presence]:
        """One timeline serves all of the contact's."""
        timeline = read_timeline(fetch(TIMELINE.bind(id=contact_id)))
        presence = _presence(outbox, account, contact_id, timeline, settled_before)
        return {item_id: presence[item_id] for item_id in item_ids if item_id in presence}


ACTIVITIES = Activities()
