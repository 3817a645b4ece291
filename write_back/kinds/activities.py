"""Activity pushes: each activity is written into a timeline exactly once. An activity that may be
there already is not sent again, not even with `--all`.

If a response was lost, the activity is looked for in the contact's timeline first. The search
includes everything that was ever sent to the contact, so that no entry counts twice. Not here:
matching entries with activities (`unknown_outcomes`)."""

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from marketing_api.contact_lookup import (
    Directory,
    Fetch,
    Timeline,
    Unread,
    fetch_timelines,
    read_timeline,
)
from marketing_api.errors import Refused
from marketing_api.records.contacts import ADDACTIVITY, TIMELINE
from write_back.account_state import Person, Who, read_who
from write_back.input import values
from write_back.input.columns import Spec
from write_back.input.rows import text_of
from write_back.input.values import BadValue, Moment, parse_moment
from write_back.item import EffectKind, Expected, Item, Past, State
from write_back.kinds.kind import BY_WHO, WHO, Kind, Outgoing
from write_back.outbox.outbox import Entry, Outbox
from write_back.planning import Planning, bind_parameters, find_standing
from write_back.unknown_outcomes import (
    Presence,
    SoughtActivity,
    describe_sought,
    is_in_timeline,
    look_for,
)
from write_back.verification import Compared, ReadBack, Readings

IN_TIMELINE = "already in the timeline"
_CUT = "the service does not show the timeline that far back, so it may have the activity already"
_SEVERAL = (
    "the address has several contacts; the activity goes to one of them, active ones first, then "
    "the oldest"
)


class _Row(NamedTuple):
    number: int
    who: Who
    description: str
    moment: Moment
    activity: str  # the end of the subject


class ActivitiesPlanning(Planning):
    """Plans activities that were not sent and are not in a timeline."""

    def plan_rows(self) -> None:
        rows = list(self.read_rows(self._read_row))
        people = list(self.find_people(rows))
        subjects: list[str] = []
        for row, person in people:
            subjects += person.list_subjects([row.activity])
        self._past = self.find_last(subjects)
        unsent = [
            candidate
            for candidate in people
            if self.try_row(candidate[0].number, self._is_unsent, *candidate)
        ]
        self._read_lately = self.known.timelines_read_lately(
            person.ids[0] for _, person in unsent if person.ids
        )
        for row, person in self._not_in_timelines(unsent):
            self.try_row(row.number, self._plan_activity, row, person)

    def _read_row(self, index: int, number: int) -> _Row:
        cells = self.picked.cells
        who = read_who(cells, index)
        description = text_of(cells["description"][index])
        if description is None:
            raise BadValue("the description is missing")
        values.check_text(description, "the description", values.MAX_DESCRIPTION)
        when = parse_moment(cells["datetime"][index], self.known.zone)
        activity = f"{when.wall}|{description}"
        return _Row(number, who, description, when, activity)

    def _is_unsent(self, row: _Row, person: Person) -> bool:
        """Raises BadValue when an earlier row has the same activity."""
        contact_id = person.contacts[0]
        subject = f"{person.name_of(contact_id)}|{row.activity}"
        self.not_said(row.number, [subject])
        # activities whose timeline was cut off are looked for again
        pasts = [past for past in self._find_pasts(row, person) if past.message != _CUT]
        pasts.sort(key=lambda past: (not past.is_done, not past.is_open))
        before = find_standing(pasts[:1], pasts[0].content) if pasts else None
        return not self.is_settled(row.number, person, before, contact_id)

    def _find_pasts(self, row: _Row, person: Person) -> Iterator[Past]:
        """Earlier changes for any contact of the address. For a row with a contact id, only those
        that this contact got or may have got."""
        contact_id = row.who.contact_id
        for subject in person.list_subjects([row.activity]):
            past = self._past.get(subject)
            if past is None:
                continue
            is_own = contact_id is None or subject.startswith(f"{contact_id}|")
            may_be_own = past.content in ("", str(contact_id))
            if is_own or may_be_own:
                yield past

    def _not_in_timelines(self, unsent: list[tuple[_Row, Person]]) -> Iterator[tuple[_Row, Person]]:
        minutes = [(person.contacts[0] or 0, row.moment.at // 60) for row, person in unsent]
        known_minutes = {minute for minute in minutes if minute[0]}
        events = self.known.find_events(known_minutes)
        for minute, (row, person) in zip(minutes, unsent, strict=True):
            activity = SoughtActivity(row.number, row.description, *row.moment)
            entries = events.get(minute, ())
            timeline = Timeline(tuple(entries))
            if is_in_timeline(activity, timeline):
                self.leave_row(row.number, IN_TIMELINE, person.email, person.contacts[0])
            else:
                yield row, person

    def _plan_activity(self, row: _Row, person: Person) -> None:
        """An activity for an address also has the address as a subject, because its contacts may
        change later. The content is the contact that gets it."""
        contact_id = person.contacts[0]
        moment = row.moment
        names = [person.name_of(contact_id)]
        if row.who.contact_id is None:
            names.append(person.address)
            if len(person.ids) > 1:
                self.count_warning(_SEVERAL)
        is_unknown = contact_id is None
        params = bind_parameters(
            ADDACTIVITY, id=contact_id, description=row.description, datetime=moment.wall
        )
        effects = {f"{name}|{row.activity}": str(contact_id or "") for name in names}
        must_read = contact_id not in self._read_lately
        item = Item(
            self.kind,
            (row.number,),
            ADDACTIVITY.name,
            params,
            effects,
            Expected(
                description=row.description,
                at=moment.at,
                look_up_count=int(must_read),
            ),
            person.email,
            contact_id,
            must_look_up=is_unknown,
        )
        self.send_item(item, is_new=True, is_unknown_address=is_unknown)
        said = f"{moment.wall} {row.description}"[:200]
        self.note_change(row.number, person.display_name, "activity", None, said)


# ---- reading back, and looking for lost activities


def _read_back(reading: ReadBack, entries: list[Entry]) -> Readings:
    """Reads each contact's timeline once. An activity in a part that the service cuts off is
    neither there nor missing."""
    by_contact: defaultdict[int, list[Entry]] = defaultdict(list)
    for entry in entries:
        if entry.contact_id is not None:
            by_contact[entry.contact_id].append(entry)
    found: dict[int, Compared | Unread] = {}
    for contact_id, timeline in fetch_timelines(reading.client, by_contact):
        own = by_contact[contact_id]
        if isinstance(timeline, Unread):
            found |= {entry.item_id: timeline for entry in own}
            continue
        presence = _find_presence(reading.outbox, own[0].account, contact_id, timeline)
        for entry in own:
            presence_of_entry = presence.get(entry.item_id, Presence.ABSENT)
            found[entry.item_id] = _READ[presence_of_entry]
    return found


_READ: Mapping[Presence, Compared | Unread] = {
    Presence.THERE: Compared(),
    Presence.ABSENT: Compared({"activity": ("there", "not there")}),
    Presence.HIDDEN: Unread("the service does not show the timeline that far back"),
}


def _find_presence(
    outbox: Outbox,
    account: str,
    contact_id: int,
    timeline: Timeline,
    settled_before: float = math.inf,
) -> dict[int, Presence]:
    sent = outbox.sent_to(account, ACTIVITIES, contact_id)
    sought = [describe_sought(entry, settled_before) for entry in sent]
    return look_for(sought, timeline)


class Activities(Kind):
    """Effects: `who|time|description`, with the contact that gets it."""

    columns = Spec(
        {**WHO, "description": ("description",), "datetime": ("datetime",)},
        (BY_WHO, ("description",), ("datetime",)),
    )
    effect = EffectKind.NOTES
    planning = ActivitiesPlanning

    def prepare_requests(
        self, entry: Entry, contact_ids: Sequence[int], directory: Directory
    ) -> Outgoing:
        """A timeline that was not read lately is read first, because another home or program may
        have written the same."""
        outgoing = super().prepare_requests(entry, contact_ids, directory)
        if not entry.expected.look_up_count:
            return outgoing
        contact_id = contact_ids[0] if contact_ids else entry.contact_id or 0
        response = directory.fetch(TIMELINE.bind(id=contact_id))
        timeline = read_timeline(response)
        activity = describe_sought(entry)
        if is_in_timeline(activity, timeline):
            return Outgoing([], IN_TIMELINE)
        presence = look_for([activity], timeline)
        if presence[entry.item_id] is Presence.HIDDEN:
            raise Refused(_CUT)
        return outgoing

    def read_back(self, reading: ReadBack, entries: list[Entry], how: str) -> None:
        """Only with `all`, since each contact takes a request; and entries that have drifted."""
        sent = [
            entry
            for entry in entries
            if entry.state is State.APPLIED and (how == "all" or entry.drift)
        ]
        reading.poll_entries(sent, lambda waiting: _read_back(reading, waiting))

    def look_for_item(
        self,
        outbox: Outbox,
        fetch: Fetch,
        entry: Entry,
        contact_id: int,
        settled_before: float,
    ) -> Presence:
        response = fetch(TIMELINE.bind(id=contact_id))
        timeline = read_timeline(response)
        presence = _find_presence(outbox, entry.account, contact_id, timeline, settled_before)
        return presence.get(entry.item_id, Presence.ABSENT)


ACTIVITIES = Activities("activities")
