"""The people of a simulated shop: who they are, how they read and buy, and where they stand when the
simulation begins.

Belongs here: what is drawn once for each contact (`simulated_shop` tells where the figures are from). Not
here: what they do."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from marketing_api.sandbox.seed import DAY
from tests.simulators.shop_mail import Bools
from tests.simulators.simulated_account import START, Floats, Ints

LEAD_DAYS = 300
#: Growth a month, gross, with the list's decay of 22.5 % a year.
_JOINING = 0.02 / 30.4
_GONE_AT_FIRST = 0.12

NEWSLETTER, CUSTOMERS, CLUB, BUSINESS, CONTEST = range(5)
_SHARES = (0.38, 0.34, 0.14, 0.04, 0.10)
_READING = (1.0, 0.9, 1.5, 1.1, 0.4)
_BUYING = (0.2, 1.0, 2.0, 2.5, 0.05)
#: Of everybody, so that recipients read as the benchmarks say.
_SHAPE, MEAN_READING = 2.0, 0.15
_FETCHED, _SCANNED, _SCANNED_BUSINESS = 0.13, 0.01, 0.33
INTERESTS = (0.34, 0.22, 0.16, 0.12, 0.09, 0.07)
_BIRTHDAYS = 0.35


@dataclass
class People:
    """By position, in the order of registration; what is true of each contact, and its state at the moment
    that is simulated."""

    registered: Floats
    listed: Ints
    interest: Ints
    reads: Floats
    buys: Floats  # purchases a day, while a customer
    drops: Floats  # the probability to have bought for the last time
    is_fetched: Bools
    is_scanned: Bools
    birthday: Ints
    inactive_at: Floats
    engaged_at: Floats
    bought_at: Floats
    is_customer: Bools
    eager: Floats  # more sessions a day, because of the last ones


def people_of(rng: np.random.Generator, contacts: int, nights: int) -> People:
    """`contacts` are there on the first night; others join."""
    since = np.minimum(-np.log(1 - rng.random(contacts)) / _JOINING, 3000.0)
    later = rng.uniform(0, nights, round(contacts * _JOINING * nights))
    registered = np.sort(np.concatenate([START - since * DAY, START + later * DAY]))
    count, began = len(registered), START - LEAD_DAYS * DAY
    listed = rng.choice(len(_SHARES), count, p=_SHARES)
    means = MEAN_READING * np.array(_READING)[listed]
    reads = rng.beta(_SHAPE * means, _SHAPE * (1 - means))
    buys = rng.gamma(0.243, 1 / 4.414, count) / 7 * np.array(_BUYING)[listed]
    drops = rng.beta(0.793, 2.426, count)
    is_fetched = rng.random(count) < _FETCHED
    age = np.maximum(began - registered, 0) / DAY
    # Not lost in any of the purchases until then, whose number is Poisson.
    is_customer = rng.random(count) < (1 - drops) ** rng.poisson(buys * age)
    quiet = np.minimum(rng.exponential(1, count) / (0.2 * (reads + 0.9 * is_fetched) + 1e-6), age)
    unbought = np.where(
        is_customer,
        np.minimum(rng.exponential(1, count) / (buys + 1e-9), age),
        rng.uniform(0, 1, count) * age,
    )
    is_gone = (rng.random(count) < _GONE_AT_FIRST) & (age > 0)
    return People(
        registered,
        listed,
        rng.choice(len(INTERESTS), count, p=INTERESTS),
        reads,
        buys,
        drops,
        is_fetched,
        rng.random(count) < np.where(listed == BUSINESS, _SCANNED_BUSINESS, _SCANNED),
        np.where(rng.random(count) < _BIRTHDAYS, rng.integers(1, 366, count), 0),
        np.where(is_gone, began - rng.uniform(0, 1, count) * age * DAY, np.inf),
        np.maximum(began - quiet * DAY, registered),
        np.where(np.isin(listed, (NEWSLETTER, CONTEST)), -np.inf, began - unbought * DAY),
        is_customer,
        np.zeros(count),
    )
