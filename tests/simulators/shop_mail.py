"""Mails of a simulated shop: who reads them when, what shows of it, and how probable that was beforehand.

Belongs here: one batch of mails and the arithmetic of chances. Not here: who is written to and why
(`simulated_shop`)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from marketing_api.sandbox.seed import DAY
from tests.simulators.simulated_account import Floats, Ints

Bools = npt.NDArray[np.bool_]
HOUR = 3600.0
#: Nobody reads a mail later.
LONGEST = 14.0 * DAY
#: Half of the readers have read after so long, a fifth within the first hour, three of four within a day;
#: machines fetch sooner.
_READ_HALF, _FETCHED_HALF, _SHAPE = 6.0 * HOUR, 1.0 * HOUR, 0.8
#: Of delivered mails (Mailchimp's benchmarks, e-commerce, before Apple's machine opens).
HARD_BOUNCE, SOFT_BOUNCE = 0.0019, 0.0026
#: Of the readers: 0.19 % unsubscribe (Mailchimp 2023) where 15.68 % read.
LEAVING = 0.19 / 15.68
#: How often a machine opens a mail for its owner (Apple fetches when there is power and a network), and how
#: often a scanner clicks.
FETCHES, SCANNER_CLICKS = 0.9, 0.3
READ, CLICK, LEAVE = 1, 2, 3


def share_after(age: Floats, half: float) -> Floats:
    """The share of those who will ever act that have acted after `age` seconds: log-logistic, cut at
    `LONGEST`."""
    odds = (np.clip(age, 0, LONGEST) / half) ** _SHAPE
    return odds / (1 + odds) / _uncut(half)


def _uncut(half: float) -> float:
    odds: float = (LONGEST / half) ** _SHAPE
    return odds / (1 + odds)


def _delay(rng: np.random.Generator, count: int, half: float) -> Floats:
    part = rng.random(count) * _uncut(half)
    return half * (part / (1 - part)) ** (1 / _SHAPE)


@dataclass
class Readers:
    """What is true of the recipients: how probably each reads this mail and, having read, clicks; who hides
    its reading behind a machine's; behind a scanner, which opens at once."""

    reading: Floats
    clicking: Floats
    is_fetched: Bools
    is_scanned: Bools

    @property
    def is_masked(self) -> Bools:
        return self.is_fetched | self.is_scanned

    def shows(self) -> Floats:
        """The probability that the recipient ever does something that shows."""
        return self.reading * np.where(self.is_masked, self.clicking + LEAVING, 1.0)

    def shares(self) -> tuple[Floats, Floats]:
        """Of those whose reading shows: the shares that click and that leave."""
        acts = np.where(self.is_masked, self.clicking + LEAVING, 1.0)
        return self.clicking / acts, LEAVING / acts


@dataclass
class Batch:
    """Mails that were sent: by mail. `shown_at`: when the recipient's reading shows, `outcome` how; infinity
    for never."""

    who: Ints
    sent_at: Floats
    readers: Readers
    is_campaign: bool
    shown_at: Floats
    outcome: Ints
    fetched_at: Floats
    scanned_at: Floats
    is_hard: Bools
    is_bounced: Bools

    @classmethod
    def send(
        cls, rng: np.random.Generator, who: Ints, sent_at: Floats, readers: Readers, *, is_campaign: bool
    ) -> Batch:
        count = len(who)
        bounce = rng.random(count)
        is_hard, is_bounced = bounce < HARD_BOUNCE, bounce < HARD_BOUNCE + SOFT_BOUNCE
        shows = (rng.random(count) < readers.shows()) & ~is_bounced
        clicks, leaves = readers.shares()
        part = rng.random(count)
        outcome = np.where(part < clicks, CLICK, np.where(part < clicks + leaves, LEAVE, READ))
        shown_at = np.where(shows, sent_at + _delay(rng, count, _READ_HALF), np.inf)
        is_fetched = readers.is_fetched & ~readers.is_scanned & (rng.random(count) < FETCHES) & ~is_bounced
        fetched_at = np.where(is_fetched, sent_at + _delay(rng, count, _FETCHED_HALF), np.inf)
        fetched_at = np.where(readers.is_scanned & ~is_bounced, sent_at + 10, fetched_at)
        is_clicked = readers.is_scanned & (rng.random(count) < SCANNER_CLICKS) & ~is_bounced
        scanned_at = np.where(is_clicked, sent_at + 12, np.inf)
        return cls(
            who, sent_at, readers, is_campaign, shown_at, outcome, fetched_at, scanned_at, is_hard, is_bounced
        )

    def opened_at(self) -> Floats:
        """The first opening that the statistics count."""
        return np.minimum(self.shown_at, self.fetched_at)


def _hazard(chance: Floats, batch: Batch, is_open: Bools, half: float, window: tuple[float, float]) -> Floats:
    """The probability to act in the window, of those who have not before it."""
    first, last = (share_after(moment - batch.sent_at, half) for moment in window)
    return np.where(is_open & ~batch.is_bounced, chance * (last - first) / (1 - chance * first), 0.0)


@dataclass
class Chances:
    """Of one day, by contact: the probabilities that its timeline stays as it is (`still`), that in addition
    to names of clickers also its row tells of nothing (`unseen`), and that it is not among the clickers
    (`unnamed`). What can happen is independent, so that they multiply; `certain` is what must happen."""

    certain: Bools
    still: Floats
    unseen: Floats
    unnamed: Floats

    @classmethod
    def of(cls, count: int) -> Chances:
        return cls(np.zeros(count, bool), np.ones(count), np.ones(count), np.ones(count))

    def meet(self, who: Ints, still: Floats, unseen: Floats, unnamed: Floats) -> None:
        """One more thing that can happen to each of `who`, who may be named twice."""
        for ours, theirs in ((self.still, still), (self.unseen, unseen), (self.unnamed, unnamed)):
            np.multiply.at(ours, who, theirs)

    def meet_mails(self, batch: Batch, window: tuple[float, float], bought: float) -> None:
        """Mails sent before the window. `bought`: the share of clicks that end with a purchase, which the row
        shows."""
        readers = batch.readers
        clicks, leaves = readers.shares()
        reads = _hazard(readers.shows(), batch, batch.shown_at > window[0], _READ_HALF, window)
        fetches = np.where(readers.is_fetched & ~readers.is_scanned, FETCHES, 0.0)
        fetched = _hazard(fetches, batch, batch.fetched_at > window[0], _FETCHED_HALF, window)
        tells = clicks + leaves if batch.is_campaign else leaves + clicks * bought
        named = clicks if batch.is_campaign else np.zeros(len(clicks))
        self.meet(batch.who, (1 - reads) * (1 - fetched), 1 - reads * tells, 1 - reads * named)

    def meet_sample(self, who: Ints, readers: Readers, share: float, age: float) -> None:
        """A campaign that goes to a random share of `who`, `age` seconds before the window ends."""
        clicks, leaves = readers.shares()
        read = readers.shows() * share_after(np.full(len(who), age), _READ_HALF)
        delivered = 1 - HARD_BOUNCE - SOFT_BOUNCE
        scanned = np.where(readers.is_scanned, SCANNER_CLICKS, 0.0)
        unnamed = HARD_BOUNCE + SOFT_BOUNCE + delivered * (1 - scanned) * (1 - read * clicks)
        unseen = SOFT_BOUNCE + delivered * (1 - scanned) * (1 - read * (clicks + leaves))
        self.meet(who, np.full(len(who), 1 - share), 1 - share + share * unseen, 1 - share + share * unnamed)

    def given(self, is_clicker: Bools, has_row: Bools, false_rows: Floats) -> Floats:
        """The probabilities of a change, by Bayes' rule, for who sees the clickers and the changed rows of
        the day. `false_rows`: how probably the row changes for no reason that a timeline shows."""
        quiet = self.still / self.unseen
        noisy = false_rows * self.still / np.maximum(self.unnamed - (1 - false_rows) * self.unseen, 1e-12)
        return np.where(self.certain | is_clicker, 1.0, 1 - np.where(has_row, noisy, quiet))
