"""A mid-size online shop, built from published figures alone, to judge the planner on an account that nobody
tuned it to.

Belongs here: habits, campaigns, automations, and how probable each change was before it happened. Not here:
the people (`shop_people`), the mails themselves (`shop_mail`), policies, goals.

Where the figures are from:
- Opens 15.68 %, clicks 2.01 %, hard bounces 0.19 %, soft 0.26 %: Mailchimp's benchmarks for e-commerce of 2019, the last that machines
  did not inflate; 0.19 % unsubscribe (Mailchimp 2023). In 2023 there were 29.81 % opens: the difference are machines', half of all opens
  (Litmus on Apple Mail Privacy Protection). These are figures of recipients, who are chosen for being engaged: the shares among all
  contacts are set so that what is sent here has 15.7 % readers, 31 % opens, 2.0 % clicks, 0.19 % unsubscribed.
- Few read much (Pareto's 80/20): reading is Beta-distributed, a fifth of the recipients reads 68 % of what is read. New subscribers read
  nearly twice as much (welcome mails: GetResponse).
- Time to open: 21.5 % within the first hour, 50.6 % by the sixth, 73 % within a day (GetResponse 2020; MailerMailer 2012: 51.8 and 78.9 %),
  95 % within a week (i-Emailer): log-logistic with a median of 6 hours, here 20, 52, 78 and 97 %.
- Security scanners that open and click within seconds: a third of business recipients, hardly anyone else (reports of Barracuda's and
  Proofpoint's users; an estimate).
- Newsletters on Tuesdays and Thursdays at ten (most common in GetResponse, HubSpot, Campaign Monitor).
- Lists lose about 22.5 % a year (MarketingSherpa): bounces and unsubscribed come to 23 % here; they grow about 2 % a month.
- Purchases: BG/NBD with r 0.243, alpha 4.414 weeks, a 0.793, b 2.426 (Fader, Hardie, Lee 2005, CDNOW). Those who only subscribed buy
  a fifth as often, members of the club twice (estimates).
- Of sessions 3 % end with a purchase (IRP, Adobe: 2 to 3 %), of carts 70.2 % are left (Baymard). Who buys is known, of the others a
  quarter (cookies last seven days in Safari). Four tenths of the visits bring another in the days after: few buy on the first (Episerver).
- Automations (Klaviyo, Omnisend): welcome at once, after two and five days; cart after one hour, a day, three days; review after 14
  days, offers after 30, replenishment after 45; win-back after 90 days without a purchase; birthdays (a third are known); re-engagement
  after 120 days without any sign, then no more mails (sunset). They are opened two to three times as often as campaigns.
- November has a third more sessions, the week of Black Friday two and a half times as many, and mails daily (Adobe Holiday, NRF).
- Lists, interests, forms, imports, our own writes, weekdays and hours of visits are estimates. Looked up were Mailchimp's of 2019, times to
  open, and Baymard's; the others are quoted from memory.
- 300 days pass before the first night, so that segments and automations are in their stride.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass, field

import numpy as np

from marketing_api.sandbox.seed import DAY
from tests.simulators.shop_mail import CLICK, HOUR, LEAVE, LONGEST, Batch, Bools, Chances, Readers
from tests.simulators.shop_people import (
    BUSINESS,
    CLUB,
    CUSTOMERS,
    INTERESTS,
    LEAD_DAYS,
    MEAN_READING,
    People,
    people_of,
)
from tests.simulators.simulated_account import START, Floats, Ints, Mailing, Moments, SimulatedAccount
from warehouse.warehouse import HISTORY_DAYS

_HONEYMOON_DAYS, _HONEYMOON = 30, 1.8
#: Who loses interest, a day, and what is left of it: estimates.
_FADING, _FADED = 0.1 / 365, 0.1
#: A contact's sessions for each purchase: the purchase, and a quarter of the 97 of hundred that end without;
#: of these, how many leave a cart. A click in a mail is worth half as much again as any visit.
_SESSIONS = 1 + 0.25 * 0.97 / 0.03
_BOUGHT = 1 / _SESSIONS
_LEFT = 0.25 * 0.702 / (1 - 0.702) / _SESSIONS
_BOUGHT_BY_MAIL, _LEFT_BY_MAIL = 0.045, 0.045 * 0.702 / (1 - 0.702)
_RETURNING, _FORGETTING = 0.4, 0.5  # the share of sessions that follow another; a day
_WEEKDAYS = (1.1, 1.02, 1.0, 0.98, 0.9, 0.88, 1.12)  # Monday first
_FORMS = 0.0004
_PUSHED_BUYERS, _SCORED = (
    0.5,
    0.02,
)  # loyalty points in the morning after a purchase; the week's scores on Sundays
_FALSE_ROWS, _WEEKLY_IMPORT = 0.002, 0.06
_ENGAGED_DAYS, _SALE_DAYS, _WIN_BACK_DAYS = 120, 180, 90
_SAMPLE = 0.2

CAMPAIGN, WELCOME, CART, REVIEW, OFFER, REPLENISH, WIN_BACK, BIRTHDAY, REENGAGE = range(9)
#: By kind of mail: how many chances to be read it is worth, and clicks of those who read (campaigns 2.01 of
#: 15.68).
_LIFTS = np.array([1, 3, 3, 2, 2, 2.5, 1.5, 2.5, 1])
_CLICKS = np.array([2.01 / 15.68, 0.15, 0.2, 0.1, 0.1, 0.2, 0.08, 0.2, 0.08])


@dataclass
class _Due:
    """Automations' mails by moment; `since`: not if the contact has bought after it, as the automation sees
    in the night."""

    who: Ints
    at: Floats
    kind: Ints
    since: Floats


@dataclass
class _Campaign:
    """What a day sends: to whom, at which hour, and whether only to a random sample, the others on the next
    day."""

    who: Ints
    hour: float
    is_sampled: bool = False
    is_sale: bool = False


@dataclass
class _Log:
    """Happenings as they come."""

    who: list[Ints] = field(default_factory=list)
    when: list[Floats] = field(default_factory=list)

    def add(self, who: Ints, when: Floats) -> None:
        self.who.append(who)
        self.when.append(when)

    def moments(self) -> Moments:
        return Moments.of(np.concatenate(self.who), np.concatenate(self.when))


class _Shop:
    """The shop day by day, from two o'clock to two o'clock."""

    def __init__(self, rng: np.random.Generator, people: People) -> None:
        self.people = people
        self.changes, self.rows, self.pushes, self.visits = _Log(), _Log(), _Log(), _Log()
        self.foreseen: list[Floats] = []
        self.sent: list[Batch] = []  # campaigns
        self._rng = rng
        self._read: list[Batch] = []  # what may still be read
        self._due: dict[int, list[_Due]] = {}
        self._untold = np.empty(0, np.int64)  # who awaits what a sample got
        self._sale: Batch | None = None
        self._buyers = np.empty(0, np.int64)  # of yesterday

    def live(self, day: int) -> None:
        """One day, and how probable what it changed was."""
        self._day = day
        self._before = float(START + day * DAY)
        self._now = self._before + DAY
        self._date = dt.datetime.fromtimestamp(self._before, dt.UTC).date()
        registered = self.people.registered
        self._known, self._joined = (
            int(np.searchsorted(registered, moment, "right")) for moment in (self._before, self._now)
        )
        self._clicked = np.zeros(len(registered), bool)
        self._changed_rows = np.zeros(len(registered), bool)
        is_judged = day >= 0
        chances = Chances.of(len(registered) if is_judged else 0)
        campaigns, automated = self._campaigns(), self._automated()
        if is_judged:
            self._foresee(chances, campaigns, automated)
        self._send_all(campaigns, automated)
        self._push(chances)
        self._join(chances)
        self._visit()
        self._fill_forms()
        self._answer_at_once()
        false_rows = self._touch_rows()
        self._fade()
        if is_judged:
            self.foreseen.append(chances.given(self._clicked, self._changed_rows, false_rows))

    # What is sure or probable before the day begins

    def _foresee(self, chances: Chances, campaigns: list[_Campaign], automated: _Due) -> None:
        window = (self._before, self._now)
        chances.certain[automated.who] = True
        for campaign in campaigns:
            if campaign.is_sampled:
                readers = self._readers(campaign.who, CAMPAIGN)
                chances.meet_sample(campaign.who, readers, _SAMPLE, self._now - self._at(campaign.hour))
            else:
                chances.certain[campaign.who] = True
        for batch in self._read:
            chances.meet_mails(batch, window, _BOUGHT_BY_MAIL)
        everybody = np.arange(self._known)
        sessions, forms = self._session_rates(), self._form_rates()
        chances.meet(
            everybody,
            np.exp(-sessions - forms),
            np.exp(-sessions * _BOUGHT - forms / 2),
            np.ones(self._known),
        )
        chances.certain[self._known : self._joined] = True  # new in the listing

    def _session_rates(self) -> Floats:
        people, here = self.people, slice(self._known)
        usual = people.buys[here] * _SESSIONS * (1 - _RETURNING) * people.is_customer[here]
        return usual * _season(self._date) * _WEEKDAYS[self._date.weekday()] + people.eager[here]

    def _form_rates(self) -> Floats:
        return _FORMS * self.people.reads[: self._known] / MEAN_READING

    # Who is written to

    def _campaigns(self) -> list[_Campaign]:
        """The calendar; segments are as of the night."""
        people, here = self.people, slice(self._known)
        weekday, (_, week, _) = self._date.weekday(), self._date.isocalendar()
        listed, interest = people.listed[here], people.interest[here]
        active = people.inactive_at[here] > self._before
        private = active & (listed != BUSINESS)
        quiet = (self._before - people.engaged_at[here]) / DAY
        engaged, sale = private & (quiet <= _ENGAGED_DAYS), private & (quiet <= _SALE_DAYS)
        recent = private & (people.bought_at[here] > self._before - 60 * DAY)
        is_peak, is_first = _is_black_week(self._date), self._date.day <= 7
        is_advent = (11, 1) <= (self._date.month, self._date.day) <= (12, 20)
        wanted: list[tuple[bool, Bools, float]] = [
            (weekday == 1 or is_peak, sale if is_peak else engaged, 10),
            (weekday == 0, recent & (interest == (week + 3) % len(INTERESTS)), 16),
            (weekday == 2 and week % 2 == 0, active & (listed == BUSINESS), 9),
            (weekday == 5 and week % 2 == 1, active & (listed == CLUB), 9),
            (weekday == 5 and is_advent and not is_peak, engaged, 10),
        ]
        found = [_Campaign(np.flatnonzero(segment), hour) for is_wanted, segment, hour in wanted if is_wanted]
        if weekday == 3:
            segment = np.flatnonzero(engaged & (interest == week % len(INTERESTS)))
            found.append(_Campaign(segment, 10, is_sampled=week % 2 == 0))
        if weekday == 6 and is_first:
            found.append(_Campaign(np.flatnonzero(sale), 18, is_sale=True))
        if weekday == 2 and self._sale is not None:  # once more to who has not opened it
            unopened = self._sale.who[self._sale.opened_at() > self._before]
            found.append(_Campaign(unopened[active[unopened]], 18))
            self._sale = None
        if len(self._untold):
            found.append(_Campaign(self._untold[active[self._untold]], 10))
            self._untold = np.empty(0, np.int64)
        return [campaign for campaign in found if len(campaign.who)]

    def _automated(self) -> _Due:
        """What automations send today, as they know it in the night."""
        people, here = self.people, slice(self._known)
        active = people.inactive_at[here] > self._before
        unbought, quiet = (
            np.floor((self._before - np.maximum(moment[here], 0)) / DAY)
            for moment in (people.bought_at, people.engaged_at)
        )
        today = self._date.timetuple().tm_yday
        for kind, hour, concerned in (
            (WIN_BACK, 11, unbought == _WIN_BACK_DAYS),
            (BIRTHDAY, 9, people.birthday[here] == today),
            (REENGAGE, 12, (quiet == _ENGAGED_DAYS) | (quiet == _ENGAGED_DAYS + 7)),
        ):
            who = np.flatnonzero(concerned & active)
            self._plan(who, np.full(len(who), self._at(hour)), kind)
        return self._take_due()

    def _plan(self, who: Ints, at: Floats, kind: int, since: Floats | None = None) -> None:
        """Mails at their moments, sorted by day."""
        days = np.ceil((at - START) / DAY).astype(np.int64) - 1
        unless = np.full(len(who), np.inf) if since is None else since
        for day in np.unique(days).tolist():
            here = days == day
            due = _Due(who[here], at[here], np.full(int(here.sum()), kind), unless[here])
            self._due.setdefault(day, []).append(due)

    def _take_due(self) -> _Due:
        """Today's, without those who have left or bought meanwhile."""
        parts = self._due.pop(self._day, [])
        if not parts:
            return _Due(np.empty(0, np.int64), np.empty(0), np.empty(0, np.int64), np.empty(0))
        due = _Due(
            *(
                np.concatenate([getattr(part, name) for part in parts])
                for name in ("who", "at", "kind", "since")
            )
        )
        kept = (self.people.inactive_at[due.who] > self._before) & (
            self.people.bought_at[due.who] <= due.since
        )
        return _Due(due.who[kept], due.at[kept], due.kind[kept], due.since[kept])

    # Mails

    def _readers(self, who: Ints, kind: int | Ints) -> Readers:
        people = self.people
        is_new = self._before - people.registered[who] < _HONEYMOON_DAYS * DAY
        reads = np.minimum(people.reads[who] * np.where(is_new, _HONEYMOON, 1.0), 0.95)
        clicking = np.broadcast_to(_CLICKS[kind], who.shape)
        return Readers(
            1 - (1 - reads) ** _LIFTS[kind], clicking, people.is_fetched[who], people.is_scanned[who]
        )

    def _send_all(self, campaigns: list[_Campaign], automated: _Due) -> None:
        self._read = [batch for batch in self._read if batch.sent_at.max() > self._before - LONGEST]
        for campaign in campaigns:
            who = campaign.who
            if campaign.is_sampled:
                is_chosen = self._rng.random(len(who)) < _SAMPLE
                who, self._untold = who[is_chosen], who[~is_chosen]
            if not len(who):
                continue
            sent_at = np.full(len(who), self._at(campaign.hour))
            batch = self._send(
                Batch.send(self._rng, who, sent_at, self._readers(who, CAMPAIGN), is_campaign=True)
            )
            self.sent.append(batch)
            self._sale = batch if campaign.is_sale else self._sale
        self._send_due(automated)
        for batch in self._read:
            self._answer(batch)

    def _send_due(self, due: _Due) -> list[Batch]:
        if not len(due.who):
            return []
        readers = self._readers(due.who, due.kind)
        return [self._send(Batch.send(self._rng, due.who, due.at, readers, is_campaign=False))]

    def _send(self, batch: Batch) -> Batch:
        self._happen(batch.who, batch.sent_at, is_own=not batch.is_campaign)
        gone = batch.who[batch.is_hard]
        self._leave(gone, batch.sent_at[batch.is_hard] + 5)
        self._happen(gone, batch.sent_at[batch.is_hard] + 5, is_own=not batch.is_campaign)
        self._read.append(batch)
        return batch

    def _answer(self, batch: Batch) -> None:
        """What recipients and their machines did today."""
        is_own = not batch.is_campaign
        for moments, is_click in ((batch.fetched_at, False), (batch.scanned_at, True)):
            here = (moments > self._before) & (moments <= self._now)
            self._happen(batch.who[here], moments[here], is_own=is_own)
            self._engage(batch.who[here], moments[here])
            if is_click and batch.is_campaign:
                self._clicked[batch.who[here]] = True
        here = (batch.shown_at > self._before) & (batch.shown_at <= self._now)
        who, when, outcome = batch.who[here], batch.shown_at[here], batch.outcome[here]
        self._happen(who, when, is_own=is_own)
        self._engage(who, when)
        gone = outcome == LEAVE
        self._leave(who[gone], when[gone])
        clicked = outcome == CLICK
        self._clicked[who[clicked]] |= batch.is_campaign
        self._shop(who[clicked], when[clicked], _BOUGHT_BY_MAIL, _LEFT_BY_MAIL)

    def _answer_at_once(self) -> None:
        """What the day itself made automations send, and what that led to."""
        while self._day in self._due:
            for batch in self._send_due(self._take_due()):
                self._answer(batch)

    # What people do of themselves

    def _visit(self) -> None:
        counts = self._rng.poisson(self._session_rates())
        who = np.repeat(np.arange(self._known), counts)
        when = self._before + DAY * self._rng.beta(3.2, 2.0, len(who))  # most in the evening
        self.people.eager[: self._known] *= np.exp(-_FORGETTING)
        self._shop(who, when, _BOUGHT, _LEFT)

    def _shop(self, who: Ints, when: Floats, bought: float, left: float) -> None:
        """Sessions, which end with a purchase, a cart that is left, or nothing."""
        self._happen(who, when, is_own=True)
        self._engage(who, when)
        np.add.at(self.people.eager, who, _RETURNING * (1 - np.exp(-_FORGETTING)))
        part = self._rng.random(len(who))
        buys, leaves = part < bought, (part >= bought) & (part < bought + left)
        self._buy(who[buys], when[buys])
        self._touch(who[buys], when[buys])
        for delay in (1, 24, 72):
            self._plan(who[leaves], when[leaves] + delay * HOUR, CART, when[leaves])

    def _buy(self, who: Ints, when: Floats) -> None:
        people = self.people
        self._happen(who, when, is_own=True)
        np.maximum.at(people.bought_at, who, when)
        people.is_customer[who[self._rng.random(len(who)) < people.drops[who]]] = False
        for kind, days in ((REVIEW, 14), (OFFER, 30)):
            self._plan(who, when + days * DAY, kind)
        consumes = people.interest[who] == 0
        self._plan(who[consumes], when[consumes] + 45 * DAY, REPLENISH)
        self._buyers = np.concatenate([self._buyers, who])

    def _join(self, chances: Chances) -> None:
        """New contacts: by a form, or by their first order."""
        who = np.arange(self._known, self._joined)
        when = self.people.registered[who]
        self._happen(who, when, is_own=True)
        self.people.engaged_at[who] = when
        for delay in (300.0, 2.0 * DAY, 5.0 * DAY):
            self._plan(who, when + delay, WELCOME)
        orders = np.isin(self.people.listed[who], (CUSTOMERS, CLUB, BUSINESS))
        self._buy(who[orders], when[orders])

    def _fill_forms(self) -> None:
        rates = self._form_rates()
        who = np.repeat(np.arange(self._known), self._rng.poisson(rates))
        when = self._before + DAY * self._rng.beta(3.2, 2.0, len(who))
        self._happen(who, when, is_own=True)
        self._engage(who, when)
        writes = self._rng.random(len(who)) < 0.5
        self._touch(who[writes], when[writes])

    def _fade(self) -> None:
        who = self._rng.integers(0, self._known, self._rng.poisson(_FADING * self._known))
        self.people.reads[who] *= _FADED

    # What we and other systems do

    def _push(self, chances: Chances) -> None:
        """At six, points to yesterday's buyers; on Sundays scores to some."""
        buyers = np.unique(self._buyers)
        self._buyers = np.empty(0, np.int64)
        who = buyers[self._rng.random(len(buyers)) < _PUSHED_BUYERS]
        if self._date.weekday() == 6:
            who = np.union1d(who, self._rng.integers(0, self._known, int(_SCORED * self._known)))
        when = np.full(len(who), self._at(6))
        self.pushes.add(who, when)
        self._touch(who, when + 60)
        self._happen(who, when + 60, is_own=True)
        if len(chances.certain):
            chances.certain[who] = True

    def _touch_rows(self) -> Floats:
        """Imports and calculated fields: how probably each row changes without anything in the timeline."""
        chance = np.full(len(self.people.registered), _FALSE_ROWS)
        if self._date.weekday() == 0:
            chance[:] = _WEEKLY_IMPORT
            if self._date.day <= 7:  # all customers, from the accounting
                chance[self.people.listed == CUSTOMERS] = 1.0
        who = np.flatnonzero(self._rng.random(self._known) < chance[: self._known])
        self._touch(who, np.full(len(who), self._at(4)))
        return chance

    # The books

    def _at(self, hour: float) -> float:
        return self._before + (hour - 2) * HOUR

    def _happen(self, who: Ints, when: Floats, *, is_own: bool) -> None:
        if self._day < -HISTORY_DAYS:
            return
        self.changes.add(who, when)
        if is_own:
            self.visits.add(who, when)

    def _touch(self, who: Ints, when: Floats) -> None:
        self._changed_rows[who] = True
        if self._day >= -HISTORY_DAYS:
            self.rows.add(who, when)

    def _leave(self, who: Ints, when: Floats) -> None:
        self.people.inactive_at[who] = np.minimum(self.people.inactive_at[who], when)
        self._touch(who, when)

    def _engage(self, who: Ints, when: Floats) -> None:
        np.maximum.at(self.people.engaged_at, who, when)


def _is_black_week(date: dt.date) -> bool:
    """From the Monday before the fourth Friday of November, the day after Thanksgiving, to the Monday after
    it."""
    first = dt.date(date.year, 11, 1)
    thanksgiving = first + dt.timedelta((3 - first.weekday()) % 7 + 21)
    return -3 <= (date - thanksgiving).days <= 4


def _season(date: dt.date) -> float:
    if _is_black_week(date):
        return 2.5
    return {11: 1.33, 12: 1.4}.get(date.month, 1.0)


def _mailing(batch: Batch) -> Mailing:
    opened = batch.opened_at()
    clicked = (batch.outcome == CLICK) & np.isfinite(batch.shown_at)
    scanned = np.isfinite(batch.scanned_at)
    clicks = Moments.of(
        np.concatenate([batch.who[clicked], batch.who[scanned]]),
        np.concatenate([batch.shown_at[clicked], batch.scanned_at[scanned]]),
    )
    return Mailing(float(batch.sent_at[0]), batch.who, np.sort(opened[np.isfinite(opened)]), clicks)


def shop_year(contacts: int, nights: int, seed: int = 3) -> SimulatedAccount:
    """`contacts` on the first night and some that join; `foreseen` answers for the days between nights. It
    takes as known what has happened unseen as well: who has bought for the last time, and whose interest has
    faded."""
    rng = np.random.default_rng(seed)
    people = people_of(rng, contacts, nights)
    shop = _Shop(rng, people)
    for day in range(-LEAD_DAYS, nights):
        shop.live(day)

    def foreseen(before: float, now: float) -> Floats:
        day = round((before - START) / DAY)
        if now - before != DAY or before != START + day * DAY or not 0 <= day < nights:
            raise ValueError("foreseen from one night to the next only")
        return shop.foreseen[day]

    mailings = [_mailing(batch) for batch in shop.sent if batch.sent_at[0] > START - HISTORY_DAYS * DAY]
    logs = (shop.changes.moments(), shop.rows.moments(), shop.pushes.moments(), shop.visits.moments())
    return SimulatedAccount(people.registered, people.listed, people.inactive_at, *logs, mailings, foreseen)


@dataclass
class Decile:
    """Contacts and days whose probability lies in one tenth."""

    count: int
    foreseen: float
    happened: float


def calibration(account: SimulatedAccount, nights: int) -> list[Decile]:
    """What was foreseen with what happened, by tenths of the probability; certainties are the last one's."""
    assert account.foreseen is not None
    sums = np.zeros((3, 11))
    for day in range(nights):
        before, now = float(START + day * DAY), float(START + (day + 1) * DAY)
        chances = account.foreseen(before, now)
        happened = np.bincount(account.changes.between(before, now)[0], minlength=len(account)) > 0
        tenth = np.where(chances >= 1, 10, np.minimum(chances * 10, 9)).astype(np.int64)
        for place, weights in enumerate((np.ones(len(chances)), chances, happened)):
            sums[place] += np.bincount(tenth, weights, minlength=11)
    count = np.maximum(sums[0], 1)
    return [
        Decile(int(one), two, three)
        for one, two, three in zip(sums[0], *(sums[1:] / count).tolist(), strict=True)
    ]
