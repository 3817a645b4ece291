"""How lists grow, worked out from what each reading showed, as docs/marts.md describes it: no SQL, no table.

`expected_growth` works out the same of the rows that a first build finds; this sees every reading."""

import datetime as dt
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from tests.simulators.list_histories import History, Member, Members, Reading
from tests.warehouse.marts.expected import Found, row_of

_DAY = dt.timedelta(days=1)
_FLOWS = ("joined_count", "moved_in_count", "left_count", "moved_out_count")
_FIRST_PLAUSIBLE = dt.date(2000, 1, 1)


@dataclass(frozen=True, eq=False)
class Step:
    """A contact that a reading showed for the first time or again, or no longer."""

    reading: Reading
    contact_id: int
    member: Member

    @property
    def address(self) -> str:
        return (self.member.email or "").lower()


#: By what a departure and an arrival are known to be the same person's, the surest first.
_PERSONS: tuple[Callable[[Step], object], ...] = (
    lambda step: step.contact_id,
    lambda step: (step.reading.list_id, step.address) if step.address else None,
    lambda step: step.address or None,
)


@dataclass
class Day:
    """What the readings of one day showed of one list."""

    arrivals: list[Step]
    departures: list[Step]
    statuses: Counter[str]
    was_read: bool = False
    was_read_completely: bool = False
    size: int = 0
    active_size: int = 0


def list_growth_daily(history: History) -> Found:
    """The rows of the account."""
    days = _observe(history)
    kinds = _classify(days)
    today = max(day for _, day in days)
    first_round = history.readings[0].round_number
    found: Found = []
    for list_id in sorted({list_id for list_id, _ in days}):
        mine = {day: seen for (other, day), seen in days.items() if other == list_id}
        is_new = min(r.round_number for r in history.readings if r.list_id == list_id) > first_round
        found += _rows(history, list_id, mine, kinds, today, is_new=is_new)
    return found


def _observe(history: History) -> dict[tuple[int, dt.date], Day]:
    """What changed from reading to reading, by list and local day."""
    known: dict[int, Members] = {}
    days: dict[tuple[int, dt.date], Day] = {}
    first_round = history.readings[0].round_number
    for reading in history.readings:
        key = reading.list_id, reading.moment.astimezone(history.zone).date()
        day = days.setdefault(key, Day([], [], Counter()))
        before, shown = known.get(reading.list_id, {}), reading.members or {}
        after = dict(shown) if reading.is_complete else before | shown
        if reading.round_number > first_round:
            day.arrivals += [Step(reading, one, after[one]) for one in after.keys() - before.keys()]
            day.departures += [Step(reading, one, before[one]) for one in before.keys() - after.keys()]
            for one in after.keys() & before.keys():
                if after[one].status != before[one].status:
                    day.statuses[after[one].status] += 1
        if reading.members is not None:
            day.was_read = True
            day.was_read_completely |= reading.is_complete
        known[reading.list_id] = after
        day.size = len(after)
        day.active_size = sum(member.status == "active" for member in after.values())
    return days


def _classify(days: dict[tuple[int, dt.date], Day]) -> dict[Step, str]:
    """What each arrival and departure counts as; one that is no change at all, as nothing."""
    kinds: dict[Step, str] = {}
    for day in {day for _, day in days}:
        seen = [some for (_, other), some in days.items() if other == day]
        came = sorted((step for some in seen for step in some.arrivals), key=_order)
        went = sorted((step for some in seen for step in some.departures), key=_order)
        kinds |= dict.fromkeys(came, "joined_count") | dict.fromkeys(went, "left_count")
        for person in _PERSONS:
            for departure, arrival in _pairs(came, went, person):
                came.remove(arrival)
                went.remove(departure)
                is_move = departure.reading.list_id != arrival.reading.list_id
                kinds[arrival] = "moved_in_count" if is_move else "no change"
                kinds[departure] = "moved_out_count" if is_move else "no change"
    return kinds


def _order(step: Step) -> tuple[dt.datetime, int]:
    return step.reading.moment, step.contact_id


def _pairs(
    came: list[Step], went: list[Step], person: Callable[[Step], object]
) -> Iterator[tuple[Step, Step]]:
    """Each departure with the person's next arrival in the same reading of the lists or a later one."""
    free = list(came)
    for departure in list(went):
        for arrival in free:
            if (
                person(departure) is not None
                and person(arrival) == person(departure)
                and arrival.reading.round_number >= departure.reading.round_number
            ):
                free.remove(arrival)
                yield departure, arrival
                break


def _rows(
    history: History,
    list_id: int,
    seen: dict[dt.date, Day],
    kinds: dict[Step, str],
    today: dt.date,
    *,
    is_new: bool,
) -> Iterator[dict[str, object]]:
    first_on = min(seen)
    survivors = Counter[dt.date]() if is_new else _survivors(history, list_id, first_on)
    moving = [day for day, some in seen.items() if some.arrivals or some.departures or some.statuses]
    if not (known := [*survivors, *moving]):
        return
    covered = sorted(day for day, some in seen.items() if some.was_read_completely)
    size = active_size = 0
    begun = min(known)
    for day in (begun + offset * _DAY for offset in range((today - begun).days + 1)):
        some, is_observed = seen.get(day), day >= first_on
        if some:
            size, active_size = some.size, some.active_size
        is_known = (
            (is_new or day > first_on)
            and is_observed
            and bool(some and (some.was_read_completely or day in moving))
        )
        steps = Counter(kinds[step] for step in (*some.arrivals, *some.departures)) if some else Counter()
        counts = {name: steps[name] for name in _FLOWS}
        before = max((other for other in covered if other < day), default=None)
        net = sum(counts[name] * (1 if name in ("joined_count", "moved_in_count") else -1) for name in _FLOWS)
        columns = "account list_id list_name day_on net_change"
        name, net_change = f"List {list_id}", net if is_known else None
        row = row_of(columns, history.account, list_id, name, day, net_change)
        row |= {name: counts[name] if is_known else None for name in _FLOWS}
        for status in ("unsubscribed", "bounced"):
            row[f"{status}_count"] = (some.statuses[status] if some else 0) if is_known else None
        row["survivor_count"] = survivors[day] if not is_new and day <= first_on else None
        row |= {"size": size if is_observed else None, "active_size": active_size if is_observed else None}
        row["days_covered"] = (day - before).days if day in covered and before else None
        yield row | {"is_observed": is_observed}


def _survivors(history: History, list_id: int, first_on: dt.date) -> Counter[dt.date]:
    """The members at the end of the first day of reading, by their day of registration."""
    members: Members = {}
    for reading in history.readings:
        if reading.list_id == list_id and reading.moment.astimezone(history.zone).date() == first_on:
            members = (reading.members or {}) if reading.is_complete else members | (reading.members or {})
    days: dict[dt.date, int] = defaultdict(int)
    for member in members.values():
        registered_on = first_on
        if member.registered_at and member.registered_at.year > 1:
            registered_on = member.registered_at.astimezone(history.zone).date()
        days[registered_on if _FIRST_PLAUSIBLE <= registered_on <= first_on else first_on] += 1
    return Counter(days)
