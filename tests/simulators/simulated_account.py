"""What happens on an account over some weeks, as columns: the sandbox's lists, characters and campaigns, drawn
without HTTP for accounts of any size.

Belongs here: when each contact's timeline changes, and what the listing and the statistics show of it. Not
here: who is asked (`bench_economy`)."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from marketing_api.sandbox.seed import DAY, WORDS
from warehouse.warehouse import HISTORY_DAYS

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
#: Unix seconds of the first night, at two o'clock.
START = 1_790_000_000 // DAY * DAY + 2 * 3600
#: Nobody opens a campaign later than this.
_LONGEST = 14 * DAY
#: One in each fifty contacts has each of these characters. Chances of opening and clicking are of 1024.
_CHARACTERS = [one for count, one in WORDS["characters"] for _ in range(count)]
_OPENS = np.array([one["opens"] for one in _CHARACTERS]) / 1024
_CLICKS = np.array([one["clicks"] for one in _CHARACTERS]) / 1024
_LEAVES_AFTER = np.array([one.get("leaves_after", 0) for one in _CHARACTERS])
_DELETED_AFTER = np.array([one.get("deleted_after", np.inf) for one in _CHARACTERS], float)
#: Three tenths of a list were uploaded on its first day; the others registered ever faster.
_IMPORTED, _GROWTH = 0.3, 1.3
_YEARS_S = 730 * DAY


@dataclass
class Moments:
    """Things that happened to contacts, in the order of their time."""

    contact: Ints
    time: Floats

    @classmethod
    def of(cls, contact: object, time: object) -> "Moments":
        who, when = np.asarray(contact, np.int64), np.asarray(time, float)
        order = np.argsort(when, kind="stable")
        return cls(who[order], when[order])

    def between(self, first: float, last: float) -> tuple[Ints, Floats]:
        """Those after `first`, up to `last`."""
        here = slice(np.searchsorted(self.time, first, "right"), np.searchsorted(self.time, last, "right"))
        return self.contact[here], self.time[here]


@dataclass
class Mailing:
    """One campaign: to whom it went, when each mail was opened, and who clicked when."""

    sent_at: float
    recipients: Ints
    opened: Floats
    clicks: Moments


@dataclass
class SimulatedAccount:
    """Contacts by position. `changes`: entries of timelines; `rows`: the listing; `pushes`: our writes."""

    registered: Floats
    listed: Ints  # the list's number
    inactive_at: Floats
    changes: Moments
    rows: Moments
    pushes: Moments
    visits: Moments  # what timelines show of contacts themselves; among `changes`
    mailings: list[Mailing] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.registered)


@dataclass
class _People:
    """Those who register by the end and are not deleted by then. `character`: a position in `_CHARACTERS`."""

    registered: Floats
    listed: Ints
    character: Ints

    @classmethod
    def draw(cls, rng: np.random.Generator, contacts: int, end: float) -> "_People":
        """`contacts` of them by `START`, over two years and the lists; nine of ten register by day."""
        history = START - _YEARS_S
        share = (1 - _IMPORTED) * (1 + _GROWTH * (end - START) / _YEARS_S)
        count = round(contacts * (_IMPORTED + share))
        grown = np.maximum(rng.uniform(0, _IMPORTED + share, count) - _IMPORTED, 0) / (1 - _IMPORTED)
        days = np.where(grown < 1, grown ** (1 / _GROWTH), 1 + (grown - 1) / _GROWTH) * _YEARS_S / DAY
        hours = np.where(rng.random(count) < 0.9, rng.uniform(7, 22, count), rng.uniform(0, 24, count))
        registered = np.minimum(history + np.floor(days) * DAY + hours * 3600, end)
        shares = [one["share"] for one in WORDS["lists"]]
        people = cls(
            registered, rng.choice(len(shares), count, p=shares), np.arange(count) % len(_CHARACTERS)
        )
        return people.at(registered + _DELETED_AFTER[people.character] > end)

    def at(self, chosen: npt.NDArray[np.bool_]) -> "_People":
        return _People(self.registered[chosen], self.listed[chosen], self.character[chosen])

    def __len__(self) -> int:
        return len(self.registered)


def _rows(rng: np.random.Generator, people: _People, inactive: Floats, nights: int) -> Moments:
    """The listing changes with the status, and with "Last Visit", which no timeline shows: false alarms."""
    period = rng.integers(20, 147, len(people))
    phase = rng.uniform(0, period)
    visits = [(phase + period * turn) for turn in range(nights // 20 + 1)]
    who = np.concatenate([np.arange(len(period))] * len(visits) + [np.flatnonzero(np.isfinite(inactive))])
    when = np.concatenate([START + np.concatenate(visits) * DAY, inactive[np.isfinite(inactive)]])
    return Moments.of(who, when)


#: One campaign every so many days, to all of one list: the probabilities of the five lists, the largest
#: first.
_EVERY_DAYS, _LISTS = 3.0, (0.0, 0.1, 0.2, 0.3, 0.4)
#: Visits, forms and messages of single contacts, (share of contacts, a day), a hundredth of their number a
#: day in all. How uneven: the rule of participation inequality (Nielsen 2006), by which 1 % make 90 % of all
#: contributions, 9 % the other tenth, and 90 % none.
_OWN = ((0.90, 0.0), (0.09, 0.01 * 0.1 / 0.09), (0.01, 0.01 * 0.9 / 0.01))
_PUSHED_RATE = 0.003


def segment_mailings(contacts: int, nights: int, seed: int = 1) -> SimulatedAccount:
    """The sandbox's people and characters, mailed to list by list: a campaign to one of the lists every third
    day, contacts that are active at their own, very different rates, and some that are written to by us."""
    rng, end = np.random.default_rng(seed), START + nights * DAY
    people = _People.draw(rng, contacts, end)
    count = len(people)
    inactive = np.full(count, np.inf)
    leaving = _LEAVES_AFTER[people.character] > 0
    inactive[leaving] = START + rng.uniform(-300, 300, int(leaving.sum())) * DAY
    rates = rng.choice([rate for _, rate in _OWN], count, p=[share for share, _ in _OWN])
    own = np.repeat(np.arange(count), rng.poisson(rates * (nights + HISTORY_DAYS)))
    visits = Moments.of(own, START + rng.uniform(-HISTORY_DAYS, nights, len(own)) * DAY)
    moments = [(np.arange(count), people.registered), (visits.contact, visits.time)]
    mailed = []
    for day in np.arange(-14, nights, _EVERY_DAYS):
        mailing, happened = _mailing(
            rng, people, inactive, START + day * DAY + 8 * 3600, [rng.choice(len(_LISTS), p=_LISTS)]
        )
        mailed.append(mailing)
        moments += happened
    pushed = rng.integers(0, count, int(count * _PUSHED_RATE * nights))
    pushes = Moments.of(pushed, START + rng.uniform(0, nights, len(pushed)) * DAY)
    moments.append((pushes.contact, pushes.time + 60))
    who, when = (np.concatenate([part[place] for part in moments]) for place in (0, 1))
    kept = when >= people.registered[who]
    seen = visits.time >= people.registered[visits.contact]
    visited = Moments.of(
        np.concatenate([visits.contact[seen], pushes.contact]),
        np.concatenate([visits.time[seen], pushes.time + 60]),
    )
    changes, listing = Moments.of(who[kept], when[kept]), _rows(rng, people, inactive, nights)
    return SimulatedAccount(
        people.registered, people.listed, inactive, changes, listing, pushes, visited, mailed
    )


def _mailing(
    rng: np.random.Generator, people: _People, inactive: Floats, sent: float, lists: Sequence[int]
) -> tuple[Mailing, list[tuple[Ints, Floats]]]:
    """A mailing to lists with all its effects. Delays are the sandbox's: half within 1.5 hours."""
    got = np.flatnonzero(np.isin(people.listed, lists) & (people.registered < sent) & (inactive > sent))
    characters = people.character[got]
    is_opened = rng.random(len(got)) < _OPENS[characters]
    part = rng.random(len(got))
    opened = sent + np.minimum(60 + 5400 * (part / np.maximum(1 - part, 1e-9)) ** 1.1, _LONGEST)
    is_clicked = is_opened & (rng.random(len(got)) < _CLICKS[characters])
    clicked = opened + rng.uniform(30, 1200, len(got))
    happened = [
        (got, np.full(len(got), sent)),
        (got[is_opened], opened[is_opened]),
        (got[is_clicked], clicked[is_clicked]),
    ]
    return Mailing(
        sent, got, np.sort(opened[is_opened]), Moments.of(got[is_clicked], clicked[is_clicked])
    ), happened
