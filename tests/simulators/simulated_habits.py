"""A third account, unlike the sandbox: heavy-tailed habits that come in bursts, quiet weekends, welcome
series and monthly reminders, campaigns to those who were active lately, weekly pushes, and a listing whose
rows change with visits as well as with imports.

It guards the planner against fitting the other two. Nothing of it is taken from them. Not here: who is asked
(`simulated_nights`)."""

from __future__ import annotations

import numpy as np

from marketing_api.sandbox.seed import DAY
from tests.simulators.simulated_account import START, Floats, Ints, Mailing, Moments, SimulatedAccount
from warehouse.warehouse import HISTORY_DAYS

_LISTS = 12
#: Days of a burst of visits; a burst begins so often a day, times a log-normal factor of the contact with
#: this sigma.
_BURST_DAYS, _BURSTS, _SIGMA = 2.5, 0.004, 1.6
#: Of the visits that a working day would see.
_WEEKEND = 0.35
#: Days after registration on which a message comes by itself; a fifth of the contacts get one every 30 days
#: on top.
_WELCOME, _REMINDED, _REMINDER_DAYS = (0.1, 2, 5, 10, 30), 0.2, 30
_MAILED_ON = (1, 3)  # Tuesday and Thursday
_ENGAGED_SHARE = 0.5  # of a list, the more engaged ones, get a campaign

_Happened = list[tuple[Ints, Floats]]


def bursting_habits(contacts: int, nights: int, seed: int = 2) -> SimulatedAccount:
    """See above; `contacts` are there by the first night, about half a percent a week are added."""
    rng = np.random.default_rng(seed)
    count = int(contacts * (1 + 0.005 * nights / 7))
    registered = np.concatenate(
        [
            START - DAY * 900 * rng.beta(1, 1.5, contacts),
            START + rng.uniform(0, nights, count - contacts) * DAY,
        ]
    )
    listed = rng.choice(_LISTS, count, p=(weights := 1 / np.arange(1, _LISTS + 1)) / weights.sum())
    inactive = np.where(rng.random(count) < 0.15, registered + rng.exponential(200, count) * DAY, np.inf)
    engaged = rng.lognormal(-(_SIGMA**2) / 2, _SIGMA, count)
    visits = _visits(rng, engaged, nights)
    sent, opened = _automations(rng, registered, engaged, nights)
    happened: _Happened = [(np.arange(count), registered), (visits.contact, visits.time), *sent, *opened]
    mailings = []
    for day in range(-HISTORY_DAYS, nights):
        if int((START // DAY + day + 3) % 7) in _MAILED_ON:
            mailing, made = _campaign(
                rng, START + day * DAY + 9 * 3600, registered, listed, inactive, engaged
            )
            mailings.append(mailing)
            happened += made
    pushes = _pushes(rng, count, nights)
    happened.append((pushes.contact, pushes.time + 60))
    who, when = (np.concatenate([part[place] for part in happened]) for place in (0, 1))
    shown = [(visits.contact, visits.time), (pushes.contact, pushes.time + 60), *sent]
    own = _since(registered, *(np.concatenate([part[place] for part in shown]) for place in (0, 1)))
    rows = _rows(rng, visits, listed, inactive, nights)
    return SimulatedAccount(
        registered, listed, inactive, _since(registered, who, when), rows, pushes, own, mailings
    )


def _since(registered: Floats, who: Ints, when: Floats) -> Moments:
    """Without what would have been before registration."""
    kept = when >= registered[who]
    return Moments.of(who[kept], when[kept])


def _visits(rng: np.random.Generator, engaged: Floats, nights: int) -> Moments:
    """Each burst brings a visit about every half day for some days; at weekends most of them do not
    happen."""
    bursts = np.repeat(np.arange(len(engaged)), rng.poisson(_BURSTS * engaged * (nights + HISTORY_DAYS)))
    began = START + rng.uniform(-HISTORY_DAYS, nights, len(bursts)) * DAY
    each = rng.geometric(1 / (1 + 2 * _BURST_DAYS), len(bursts))
    who, when = (
        np.repeat(bursts, each),
        np.repeat(began, each) + rng.exponential(_BURST_DAYS / 2, int(each.sum())) * DAY,
    )
    is_weekend = (when // DAY + 3) % 7 >= 5
    kept = ~is_weekend | (rng.random(len(who)) < _WEEKEND)
    return Moments.of(who[kept], when[kept])


def _automations(
    rng: np.random.Generator, registered: Floats, engaged: Floats, nights: int
) -> tuple[_Happened, _Happened]:
    """Messages that no campaign's statistics show, and their openings."""
    sent: _Happened = [(np.arange(len(registered)), registered + day * DAY) for day in _WELCOME]
    reminded = np.flatnonzero(rng.random(len(registered)) < _REMINDED)
    first = (
        np.ceil((START - 30 * DAY - registered[reminded]) / (_REMINDER_DAYS * DAY)).clip(1)
        * _REMINDER_DAYS
        * DAY
    )
    sent += [
        (reminded, registered[reminded] + first + turn * _REMINDER_DAYS * DAY)
        for turn in range(nights // _REMINDER_DAYS + 2)
    ]
    opened = []
    for who, when in sent:
        does = rng.random(len(who)) < _opening(engaged[who])
        opened.append((who[does], when[does] + _delay(rng, int(does.sum()))))
    return sent, opened


def _campaign(
    rng: np.random.Generator, sent: float, registered: Floats, listed: Ints, inactive: Floats, engaged: Floats
) -> tuple[Mailing, _Happened]:
    """To the more engaged half of one or two lists."""
    wanted = rng.choice(_LISTS, rng.integers(1, 3), replace=False)
    there = np.flatnonzero(np.isin(listed, wanted) & (registered < sent) & (inactive > sent))
    got = there[engaged[there] >= np.quantile(engaged[there], 1 - _ENGAGED_SHARE)] if len(there) else there
    is_opened = rng.random(len(got)) < _opening(engaged[got])
    opened = sent + _delay(rng, len(got))
    is_clicked = is_opened & (rng.random(len(got)) < 0.15)
    clicked = opened + rng.uniform(30, 1200, len(got))
    made = [
        (got, np.full(len(got), sent)),
        (got[is_opened], opened[is_opened]),
        (got[is_clicked], clicked[is_clicked]),
    ]
    return Mailing(
        sent, got, np.sort(opened[is_opened]), Moments.of(got[is_clicked], clicked[is_clicked])
    ), made


def _opening(engaged: Floats) -> Floats:
    """How likely a message is opened."""
    found: Floats = 0.05 + 0.6 * engaged / (1 + engaged)
    return found


def _delay(rng: np.random.Generator, count: int) -> Floats:
    """Seconds until a message is opened: three hours in the middle, days for some."""
    return rng.lognormal(np.log(3 * 3600), 1.5, count)


def _pushes(rng: np.random.Generator, count: int, nights: int) -> Moments:
    """Every Monday noon a hundredth of the contacts."""
    mondays = [day for day in range(nights) if int((START // DAY + day + 3) % 7) == 0]
    who = [rng.choice(count, count // 100, replace=False) for _ in mondays]
    return Moments.of(
        np.concatenate([*who, []]), np.repeat([START + (day + 0.4) * DAY for day in mondays], count // 100)
    )


def _rows(rng: np.random.Generator, visits: Moments, listed: Ints, inactive: Floats, nights: int) -> Moments:
    """Half of the visits change the row; so does becoming inactive; every second week an import rewrites all
    rows of a list."""
    told = rng.random(len(visits.contact)) < 0.5
    left = np.flatnonzero(np.isfinite(inactive))
    who, when = [visits.contact[told], left], [visits.time[told], inactive[left]]
    for day in range(5, nights, 14):
        imported = np.flatnonzero(listed == rng.integers(_LISTS))
        who.append(imported)
        when.append(np.full(len(imported), START + day * DAY))
    return Moments.of(np.concatenate(who), np.concatenate(when))
