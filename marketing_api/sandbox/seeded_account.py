"""One account: everything the service knows, as a function of its origin and the clock, plus what was written to it.

Belongs here: putting the seeded parts together and keeping them in step with written campaigns. Not here: the rules of reads and
writes (`AREA.py`), the parts themselves (`roll`, `people`, `campaign_book`, `mailing`, `automations`, `shelf`).
"""

from __future__ import annotations

import datetime as dt
import time
from dataclasses import dataclass, field

from marketing_api.sandbox.campaign_book import Campaign, CampaignBook
from marketing_api.sandbox.chance import salt
from marketing_api.sandbox.mailing import Automation, Mailings
from marketing_api.sandbox.moments import Moments
from marketing_api.sandbox.people import People
from marketing_api.sandbox.roll import DAY, HISTORY_DAYS, Roll
from marketing_api.sandbox.words import BUSINESSES, LISTS

FIRST_LIST_ID = 1801
#: Mailings are planned so far ahead of the moment that is asked for.
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
        self.fixed = fixed
        self.advanced = 0

    def now(self) -> int:
        return (int(time.time()) if self.fixed is None else self.fixed) + self.advanced

    def advance(self, days: float) -> None:
        self.advanced += int(days * DAY)


def list_id(number: int) -> int:
    """The id of a seeded list."""
    return FIRST_LIST_ID + number * 13


@dataclass
class Business:
    """Who the key belongs to."""

    business_id: int
    name: str
    contact: str
    phone: str
    service_name: str
    package: str
    timezone: str


@dataclass
class Account:
    """The seeded side of an account and its mailings; `written` campaigns take part in them."""

    origin: Origin
    start: int = 0
    rolls: list[Roll] = field(default_factory=list)

    def __post_init__(self) -> None:
        moments = Moments(self.origin.timezone)
        first_day = moments.date(self.origin.base) - dt.timedelta(days=HISTORY_DAYS)
        self.start = moments.midnight(first_day)
        self.rolls = _calibrated(self.origin, self.start)
        self.people = People(self.origin.seed, self.rolls)
        name, contact, service_name = BUSINESSES[salt(self.origin.seed, "business") % len(BUSINESSES)]
        self.business = Business(
            4000 + self.origin.seed % 1000, name, contact, "+15550100100", service_name, "Agency Pro", self.origin.timezone
        )
        self.book = CampaignBook(self.origin.seed, self.start, [list_id(number) for number in range(len(self.rolls))], name)
        self.written: dict[int, Campaign] = {}
        self.replaced: set[int] = set()  # seeded campaigns that were deleted before they were sent, or stand in `written`
        self._planned_until = 0
        self._plan(self.origin.base)

    def plan(self, moment: int) -> None:
        """Make sure that all mailings by `moment` are known; cheap when they are."""
        if moment + 15 * DAY > self._planned_until:
            self._plan(moment)

    def replan(self, moment: int) -> None:
        """After a campaign was written: the past stays, the future is planned anew."""
        self._plan(moment)

    def _plan(self, moment: int) -> None:
        self._planned_until = moment + _AHEAD
        seeded = [campaign for campaign in self.book.until(self._planned_until + _AHEAD) if campaign.campaign_id not in self.replaced]
        campaigns = [campaign for campaign in seeded + list(self.written.values()) if campaign.sent_at or campaign.trigger]
        self.sends = _by_list(campaigns)
        self.mailings: list[Mailings] = []
        self.automations: list[list[Automation]] = []
        for roll in self.rolls:
            here = [campaign for campaign in campaigns if list_id(roll.number) in campaign.lists]
            self.mailings.append(Mailings(roll, self.origin.seed, self.sends.get(list_id(roll.number), [])))
            self.automations.append(
                [Automation(roll, self.origin.seed, campaign, campaign.trigger) for campaign in here if campaign.trigger is not None]
            )

    def roll_of_list(self, wanted: int) -> Roll | None:
        number, odd = divmod(wanted - FIRST_LIST_ID, 13)
        return self.rolls[number] if not odd and 0 <= number < len(self.rolls) else None


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
