"""An account as its seed has it: its business, the registers of its lists, its people and its mailings; and written campaigns beside the
seeded ones, since both are sent. Not here: what was written to contacts (`subscribers`) and everything else that it owns (`shelves`)."""

import datetime as dt
import itertools
from collections import defaultdict
from dataclasses import dataclass, replace
from typing import NamedTuple

from marketing_api.sandbox.chance import salt
from marketing_api.sandbox.mailing import Automation, Campaign, CampaignBook, Mailings
from marketing_api.sandbox.moments import DAY, moments_of
from marketing_api.sandbox.seeded_contacts import HISTORY_DAYS, People, Roll, list_id
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


class Business(NamedTuple):
    """Who the key belongs to."""

    business_id: int
    name: str
    contact: str
    service_name: str


class Account:
    """`sends` are the campaigns sent to each list (by id), in the order of sending; mailings and automations are by list number."""

    def __init__(self, origin: Origin) -> None:
        self.origin = origin
        moments = moments_of(origin.timezone)
        self.start = moments.midnight(moments.date(origin.base) - dt.timedelta(days=HISTORY_DAYS))
        self.rolls = _calibrated(origin, self.start)
        self.people = People(origin.seed, self.rolls)
        self.business = Business(4000 + origin.seed % 1000, *BUSINESSES[salt(origin.seed, "business") % len(BUSINESSES)])
        self.book = CampaignBook(origin.seed, self.start, [list_id(number) for number in range(len(self.rolls))], self.business.name)
        self.campaign_ids = itertools.count(60_001)
        self._written: dict[int, Campaign] = {}  # in place of the seeded campaign with that id, too
        self._deleted: set[int] = set()
        self._replan(origin.base)

    def plan(self, moment: int) -> None:
        """Make sure that all mailings by `moment` are known; cheap when they are."""
        if moment + 15 * DAY > self._planned_until:
            self._replan(moment)

    def _replan(self, moment: int) -> None:
        """After a campaign was written: the past stays, the future is planned anew."""
        self._planned_until = moment + _AHEAD
        self.sends: defaultdict[int, list[Campaign]] = defaultdict(list)
        campaigns = self._every(self._planned_until + _AHEAD)
        for campaign in sorted(campaigns, key=lambda one: (one.sent_at, one.campaign_id)):
            for wanted in campaign.lists if campaign.sent_at else ():
                self.sends[wanted].append(campaign)
        self.mailings = [Mailings(roll, self.origin.seed, self.sends[list_id(roll.number)]) for roll in self.rolls]
        triggered = [(campaign, campaign.trigger) for campaign in campaigns if campaign.trigger is not None]
        self.automations = [
            [Automation(roll, self.origin.seed, *one) for one in triggered if list_id(roll.number) in one[0].lists] for roll in self.rolls
        ]

    def _every(self, moment: int) -> list[Campaign]:
        return [one for one in self.book.until(moment) if one.campaign_id not in self._written] + list(self._written.values())

    def campaigns(self, now: int) -> list[Campaign]:
        """Every campaign that can be seen, oldest first within each kind."""
        return [campaign for campaign in self._every(now) if campaign.campaign_id not in self._deleted]

    def put_campaign(self, campaign: Campaign, now: int) -> None:
        """Add or replace a campaign; what was sent stays sent."""
        self._written[campaign.campaign_id] = campaign
        self._replan(now)

    def delete_campaign(self, campaign: Campaign, now: int) -> None:
        """It shows no more; when it was not sent yet it never will be."""
        self._deleted.add(campaign.campaign_id)
        if campaign.is_automated:
            self.put_campaign(replace(campaign, ended_at=now), now)
        elif campaign.sent_at > now:
            self.put_campaign(replace(campaign, sent_at=0), now)


def _calibrated(origin: Origin, start: int) -> list[Roll]:
    """Rolls of which exactly `contacts` entries stand at the base: the larger lists make up for deletions and rounding."""
    rolls = [Roll(origin.seed, number, int(origin.contacts * one["share"]), start) for number, one in enumerate(LISTS)]
    for number in (0, 1, 2):
        for _ in range(20):
            missing = origin.contacts - sum(roll.standing(origin.base) for roll in rolls)
            if not missing:
                return rolls
            rolls[number] = Roll(origin.seed, number, rolls[number].size + missing, start)
    return rolls
