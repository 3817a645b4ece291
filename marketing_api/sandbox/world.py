"""One account: everything the service knows, as a function of its origin and the clock, plus what was written to it."""

from __future__ import annotations

import datetime as dt
import itertools
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

from marketing_api.sandbox import account, goals, lists, users, webhooks
from marketing_api.sandbox.campaign_book import Campaign, CampaignBook
from marketing_api.sandbox.chance import salt
from marketing_api.sandbox.mailing import Automation, Mailings
from marketing_api.sandbox.moments import DAY, moments_of
from marketing_api.sandbox.reputation import Reviews
from marketing_api.sandbox.rules import Shelf
from marketing_api.sandbox.seeded_contacts import HISTORY_DAYS, People, Roll, list_id, list_number
from marketing_api.sandbox.social import Feed
from marketing_api.sandbox.subscribers import Activity, Subscribers
from marketing_api.sandbox.words import BUSINESSES, LISTS

#: Mailings are planned so far ahead of the moment that is shown.
_AHEAD = 45 * DAY


@dataclass(frozen=True, slots=True)
class Origin:
    """What determines an account: it shows exactly `contacts` contacts at `base` (unix seconds), two years after its start."""

    seed: int = 1
    contacts: int = 600
    base: int = 0
    timezone: str = "UTC"


class Clock:
    """The account's time: real time plus what it was advanced by, or standing still at `fixed`."""

    def __init__(self, fixed: int | None = None) -> None:
        self.fixed, self.advanced = fixed, 0

    def now(self) -> int:
        return (int(time.time()) if self.fixed is None else self.fixed) + self.advanced

    def advance(self, days: float) -> None:
        self.advanced += int(days * DAY)


class Business(NamedTuple):
    """Who the key belongs to."""

    business_id: int
    name: str
    contact: str
    service_name: str


class Account:
    """The seeded side of an account and its mailings; `written` campaigns take part in them."""

    def __init__(self, origin: Origin) -> None:
        self.origin = origin
        moments = moments_of(origin.timezone)
        self.start = moments.midnight(moments.date(origin.base) - dt.timedelta(days=HISTORY_DAYS))
        self.rolls = _calibrated(origin, self.start)
        self.people = People(origin.seed, self.rolls)
        self.business = Business(4000 + origin.seed % 1000, *BUSINESSES[salt(origin.seed, "business") % len(BUSINESSES)])
        self.book = CampaignBook(origin.seed, self.start, [list_id(number) for number in range(len(self.rolls))], self.business.name)
        self.written: dict[int, Campaign] = {}
        self.replaced: set[int] = set()  # seeded campaigns that were deleted before they were sent, or stand in `written`
        self.replan(origin.base)

    def plan(self, moment: int) -> None:
        """Make sure that all mailings by `moment` are known; cheap when they are."""
        if moment + 15 * DAY > self._planned_until:
            self.replan(moment)

    def replan(self, moment: int) -> None:
        """After a campaign was written: the past stays, the future is planned anew."""
        self._planned_until = moment + _AHEAD
        seeded = [campaign for campaign in self.book.until(self._planned_until + _AHEAD) if campaign.campaign_id not in self.replaced]
        campaigns = [campaign for campaign in seeded + list(self.written.values()) if campaign.sent_at or campaign.trigger]
        self.sends = _by_list(campaigns)
        self.mailings = [Mailings(roll, self.origin.seed, self.sends.get(list_id(roll.number), [])) for roll in self.rolls]
        self.automations = [
            [
                Automation(roll, self.origin.seed, campaign, campaign.trigger)
                for campaign in campaigns
                if campaign.trigger is not None and list_id(roll.number) in campaign.lists
            ]
            for roll in self.rolls
        ]

    def roll_of_list(self, wanted: int) -> Roll | None:
        number = list_number(wanted)
        return self.rolls[number] if 0 <= number < len(self.rolls) else None


def _by_list(campaigns: list[Campaign]) -> dict[int, list[Campaign]]:
    """What is sent to each list (by id), in the order of sending."""
    sends: dict[int, list[Campaign]] = {}
    for campaign in sorted(campaigns, key=lambda one: (one.sent_at, one.campaign_id)):
        for wanted in campaign.lists if campaign.sent_at else ():
            sends.setdefault(wanted, []).append(campaign)
    return sends


def _calibrated(origin: Origin, start: int) -> list[Roll]:
    """Rolls of which exactly `contacts` entries stand at the base: the larger lists make up for deletions and rounding."""
    rolls = [Roll(origin.seed, number, int(origin.contacts * share), start) for number, (_, share, _) in enumerate(LISTS)]
    for number in (0, 1, 2):
        for _ in range(20):
            missing = origin.contacts - sum(roll.standing(origin.base) for roll in rolls)
            if not missing:
                return rolls
            rolls[number] = Roll(origin.seed, number, rolls[number].size + missing, start)
    return rolls


class World:
    """One account with everything in it."""

    def __init__(self, origin: Origin, clock: Clock) -> None:
        self.clock = clock
        self.account = Account(origin)
        self.subscribers = Subscribers(self.account)
        self.activity = Activity(self.account, self.subscribers)
        seeded = self.account
        self.lists: Shelf = Shelf("list", partial(lists.seeded, seeded), 2501)
        self.deleted_campaigns: set[int] = set()
        self._campaign_ids = itertools.count(60_001)
        self.businesses: Shelf = Shelf("sub-account", partial(account.seeded, seeded), 4901)
        self.users: Shelf = Shelf("user", partial(users.seeded, seeded), 6901)
        self.managers: Shelf = Shelf("manager", partial(users.seeded_managers, seeded), 7901)
        self.groups: Shelf = Shelf("group", partial(users.seeded_groups, seeded), 8901)
        self.goals: Shelf = Shelf("goal", partial(goals.seeded, seeded), 3901)
        self.webhooks: Shelf = Shelf("webhook", partial(webhooks.seeded, seeded), 5901)
        self.reviews = Reviews(seeded)
        feed = Feed(seeded)
        self.posts: Shelf = Shelf("post", feed.posts, 990_001)
        self.links: Shelf = Shelf("link", feed.links, 995_001)

    def now(self) -> int:
        """The account's time, with all mailings by then known."""
        now = self.clock.now()
        self.account.plan(now)
        return now

    def campaigns(self, now: int) -> Iterator[Campaign]:
        """Every campaign that can be seen, oldest first within each kind."""
        seeded = (one for one in self.account.book.until(now) if one.campaign_id not in self.account.replaced)
        for campaign in [*seeded, *self.account.written.values()]:
            if campaign.campaign_id not in self.deleted_campaigns:
                yield campaign

    def campaign(self, wanted: int, now: int) -> Campaign | None:
        return next((campaign for campaign in self.campaigns(now) if campaign.campaign_id == wanted), None)

    def new_campaign_id(self) -> int:
        return next(self._campaign_ids)

    def put_campaign(self, campaign: Campaign, now: int) -> None:
        """Add or replace a campaign; what was sent stays sent, the future is planned anew."""
        self.account.replaced.add(campaign.campaign_id)
        self.account.written[campaign.campaign_id] = campaign
        self.account.replan(now)

    def delete_campaign(self, campaign: Campaign, now: int) -> None:
        """It shows no more; when it was not sent yet it never will be."""
        self.deleted_campaigns.add(campaign.campaign_id)
        if campaign.is_automated:
            self.put_campaign(replace(campaign, ended_at=now), now)
        elif campaign.sent_at > now:
            self.account.replaced.add(campaign.campaign_id)
            self.account.written.pop(campaign.campaign_id, None)
            self.account.replan(now)
