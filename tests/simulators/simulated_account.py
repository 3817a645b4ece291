"""What happens on an account over some weeks, as columns: the sandbox's people, lists, characters, mailings
and automations, without HTTP.

Belongs here: when each contact's timeline changes, and what the listing and the statistics show of it. Not
here: who is asked (`bench_economy`)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from marketing_api.sandbox.seed import DAY
from marketing_api.sandbox.seeded_account import Origin
from tests.simulators.lazy_account import CHARACTERS, LONGEST, Account, Roll, left
from warehouse.warehouse import HISTORY_DAYS

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
#: Unix seconds of the first night, at two o'clock.
START = 1_790_000_000 // DAY * DAY + 2 * 3600


@dataclass
class Moments:
    """Things that happened to contacts, in the order of their time."""

    contact: Ints
    time: Floats

    @classmethod
    def of(cls, contact: object, time: object) -> Moments:
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
    """Contacts by position. `changes` are new or changed entries of timelines; `rows` of the listing;
    `pushes` our own writes."""

    registered: Floats
    listed: Ints  # the list's number
    inactive_at: Floats
    changes: Moments
    rows: Moments
    pushes: Moments
    visits: Moments  # what timelines show of contacts themselves and of automations; among `changes`
    mailings: list[Mailing] = field(default_factory=list)
    #: By contact: how probably its timeline changes after the first and up to the second moment, for one who
    #: knows the account's rules, all that happened before, and what the service shows since without
    #: timelines; not the future.
    foreseen: Callable[[float, float], Floats] | None = None

    def __len__(self) -> int:
        return len(self.registered)


@dataclass
class _People:
    """The sandbox's contacts that register by the end."""

    registered: Floats
    listed: Ints
    index: Ints
    slot: Ints


def _people(account: Account, end: float) -> _People:
    parts = [_members(roll, end) for roll in account.rolls]
    return _People(*(np.concatenate([part[place] for part in parts]) for place in range(4)))


def _members(roll: Roll, end: float) -> tuple[Floats, Ints, Ints, Ints]:
    count = roll.registered(int(end))
    index = np.arange(count)
    slots = np.array([roll.slot(one) for one in range(count)], np.int64)
    registered = np.array([roll.registered_at(one) for one in range(count)], float)
    lives = np.array([character.deleted_after or 1 << 40 for character in CHARACTERS], float)
    stays = registered + lives[slots] > end
    return registered[stays], np.full(int(stays.sum()), roll.number), index[stays], slots[stays]


def mass_mailings(contacts: int, nights: int, seed: int = 1) -> SimulatedAccount:
    """The sandbox as it is: every eighth day a campaign to most lists, automations after registration,
    nothing else."""
    end = START + nights * DAY
    account = Account(Origin(seed, contacts, START))
    account.plan(end)
    people = _people(account, end)
    who: list[int] = []
    when: list[float] = []
    inactive = np.full(len(people.registered), np.inf)
    opened: dict[int, list[float]] = {}
    clicked: dict[int, list[tuple[int, float]]] = {}
    reached: dict[int, list[int]] = {}
    automated: list[tuple[int, float]] = []
    sent_at: dict[int, int] = {}
    for position, (number, index, slot) in enumerate(
        zip(people.listed.tolist(), people.index.tolist(), people.slot.tolist(), strict=True)
    ):
        mailings = account.mailings[number]
        if leaves := left(mailings, account.rolls[number], index, slot):
            inactive[position] = leaves
        for mailing in mailings:
            sent, campaign = mailing.campaign.sent_at, mailing.campaign.campaign_id
            if not START - LONGEST < sent <= end or (outcome := mailing.outcome(index, slot)) is None:
                continue
            sent_at[campaign] = sent
            reached.setdefault(campaign, []).append(position)
            moments = [
                moment for moment in (outcome.sent_at, outcome.opened_at, outcome.clicked_at) if moment
            ]
            who += [position] * len(moments)
            when += moments
            if outcome.opened_at:
                opened.setdefault(campaign, []).append(outcome.opened_at)
            if outcome.clicked_at:
                clicked.setdefault(campaign, []).append((position, outcome.clicked_at))
        for automation in account.automations[number]:
            if (
                people.registered[position] + automation.after > START
                and (done := automation.outcome(index, slot)) is not None
            ):
                moments = [moment for moment in (done.sent_at, done.opened_at, done.clicked_at) if moment]
                who += [position] * len(moments)
                when += moments
                automated.append((position, done.sent_at))
    clicks = {one: Moments.of(*zip(*clicked.get(one, [(0, 0.0)]), strict=True)) for one in sent_at}
    mailed = [
        Mailing(float(sent), np.array(reached[one]), np.sort(opened.get(one, [])), clicks[one])
        for one, sent in sent_at.items()
    ]
    rng = np.random.default_rng(seed)
    changes = Moments.of([*who, *range(len(inactive))], [*when, *people.registered])
    own = Moments.of(*zip(*automated, strict=True))
    return SimulatedAccount(
        people.registered,
        people.listed,
        inactive,
        changes,
        _rows(rng, people, inactive, nights),
        Moments.of([], []),
        own,
        mailed,
    )


def _rows(rng: np.random.Generator, people: _People, inactive: Floats, nights: int) -> Moments:
    """The listing's entries change with the status, and with the field "Last Visit", which no timeline shows:
    false alarms."""
    period = rng.integers(20, 147, len(people.registered))
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
    rng = np.random.default_rng(seed)
    end = START + nights * DAY
    people = _people(Account(Origin(seed, contacts, START)), end)
    count = len(people.registered)
    inactive = np.full(count, np.inf)
    leaving = np.array([bool(character.leaves_after) for character in CHARACTERS])[people.slot]
    inactive[leaving] = START + rng.uniform(-300, 300, int(leaving.sum())) * DAY
    rates = rng.choice([rate for _, rate in _OWN], count, p=[share for share, _ in _OWN])
    own = np.repeat(np.arange(count), rng.poisson(rates * (nights + HISTORY_DAYS)))
    visits = Moments.of(own, START + rng.uniform(-HISTORY_DAYS, nights, len(own)) * DAY)
    moments = [(np.arange(count), people.registered), (visits.contact, visits.time)]
    mailed = []
    for day in np.arange(-14, nights, _EVERY_DAYS):
        mailing, happened = _segment_mailing(rng, people, inactive, START + day * DAY + 8 * 3600)
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


def _segment_mailing(
    rng: np.random.Generator, people: _People, inactive: Floats, sent: float
) -> tuple[Mailing, list[tuple[Ints, Floats]]]:
    """A mailing to part of a list, with everything that it makes happen. Delays are the sandbox's: half
    within an hour and a half."""
    wanted = rng.choice(len(_LISTS), p=_LISTS)
    got = np.flatnonzero((people.listed == wanted) & (people.registered < sent) & (inactive > sent))
    characters = people.slot[got]
    opens, clicks = (
        np.array([getattr(one, name) for one in CHARACTERS]) / 1024 for name in ("opens", "clicks")
    )
    is_opened = rng.random(len(got)) < opens[characters]
    part = rng.random(len(got))
    opened = sent + np.minimum(60 + 5400 * (part / np.maximum(1 - part, 1e-9)) ** 1.1, LONGEST)
    is_clicked = is_opened & (rng.random(len(got)) < clicks[characters])
    clicked = opened + rng.uniform(30, 1200, len(got))
    happened = [
        (got, np.full(len(got), sent)),
        (got[is_opened], opened[is_opened]),
        (got[is_clicked], clicked[is_clicked]),
    ]
    return Mailing(
        sent, got, np.sort(opened[is_opened]), Moments.of(got[is_clicked], clicked[is_clicked])
    ), happened


def without_signals(contacts: int, nights: int, seed: int = 1, share: float = 0.02) -> SimulatedAccount:
    """Every day the same share of contacts changes, drawn anew, and nothing tells which."""
    rng = np.random.default_rng(seed)
    nothing = Moments.of([], [])
    changed = [rng.choice(contacts, int(share * contacts), replace=False) for _ in range(nights)]
    when = [np.full(len(one), START + day * DAY + 3600.0) for day, one in enumerate(changed)]
    changes = Moments.of(np.concatenate(changed), np.concatenate(when)) if share else nothing
    registered = START - rng.uniform(1, 700, contacts) * DAY
    return SimulatedAccount(
        registered,
        rng.integers(0, 5, contacts),
        np.full(contacts, np.inf),
        changes,
        nothing,
        nothing,
        nothing,
    )
