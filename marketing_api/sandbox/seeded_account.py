"""An account as its seed has it: its business, the registers of its lists, its people, campaigns and
mailings; and written campaigns beside the seeded ones, since both are sent. Not here: what was written to
contacts (`subscribers`) and what else it owns (`world`).

The seeded calendar goes on for ever, so that advancing the clock keeps producing sends."""

import datetime as dt
import itertools
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, replace

from marketing_api.sandbox.mailing import Automation, Campaign, Links, Mailing
from marketing_api.sandbox.seed import DAY, WORDS, Moments, pick, salt, spread
from marketing_api.sandbox.seeded_contacts import HISTORY_DAYS, People, Roll, list_id

#: Mailings are planned so far ahead of the moment that is shown.
_AHEAD = 45 * DAY
_SENT_IN_HISTORY = 20


@dataclass(frozen=True, slots=True)
class Origin:
    """What determines an account: it shows exactly `contacts` contacts at `base` (unix seconds), two years
    after its start."""

    seed: int = 1
    contacts: int = 600
    base: int = 0
    timezone: str = "UTC"


class Account:
    """Mailings (in the order of sending) and automations are by list number."""

    def __init__(self, origin: Origin) -> None:
        self.origin = origin
        moments = Moments(origin.timezone)
        self.start = moments.midnight(moments.date(origin.base) - dt.timedelta(days=HISTORY_DAYS))
        self.rolls = _calibrated(origin, self.start)
        self.people = People(origin.seed, self.rolls)
        self.business_id = 4000 + origin.seed % 1000
        self.business, self.contact, self.service_name = pick("businesses", salt(origin.seed, "business"))
        self._calendar: list[Campaign] = []  # as far as it was needed
        self._fixed = [*self._drafts(), *self._automations()]
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
        sent: defaultdict[int, list[Campaign]] = defaultdict(list)  # by list id
        campaigns, seed = self._every(self._planned_until + _AHEAD), self.origin.seed
        for campaign in sorted(campaigns, key=lambda one: (one.sent_at, one.campaign_id)):
            for wanted in campaign.lists if campaign.sent_at else ():
                sent[wanted].append(campaign)
        self.mailings: list[list[Mailing]] = []
        self.automations: list[list[Automation]] = []
        for roll in self.rolls:
            sends = sent[list_id(roll.number)]
            times = [one.sent_at for one in sends]
            self.mailings.append([Mailing(roll, seed, one, place, times) for place, one in enumerate(sends)])
            self.automations.append(
                [
                    Automation(roll, seed, one)
                    for one in campaigns
                    if one.trigger and list_id(roll.number) in one.lists
                ]
            )

    def _every(self, moment: int) -> list[Campaign]:
        """Every campaign created by `moment`, in order of creation within each kind; then the written
        ones."""
        while not self._calendar or self._calendar[-1].created_at <= moment:
            self._calendar.append(self._sent(len(self._calendar)))
        seeded = (one for one in self._calendar + self._fixed if one.created_at <= moment)
        return [*(one for one in seeded if one.campaign_id not in self._written), *self._written.values()]

    def campaigns(self, now: int) -> list[Campaign]:
        """Every campaign that can be seen, oldest first within each kind."""
        return [campaign for campaign in self._every(now) if campaign.campaign_id not in self._deleted]

    def put_campaign(self, campaign: Campaign, now: int) -> None:
        self._written[campaign.campaign_id] = campaign
        self._replan(now)

    def delete_campaign(self, campaign: Campaign, now: int) -> None:
        """It shows no more; when it was not sent yet it never will be."""
        self._deleted.add(campaign.campaign_id)
        if campaign.is_automated:
            self.put_campaign(replace(campaign, ended_at=now), now)
        elif campaign.sent_at > now:
            self.put_campaign(replace(campaign, sent_at=0), now)

    # seeded campaigns

    def _sent(self, ordinal: int) -> Campaign:
        draw = spread(salt(self.origin.seed, "campaigns"), ordinal)
        # Days from the start to a send: ever closer together within the history, every eighth day after it.
        days = HISTORY_DAYS + 6 + 8 * (ordinal - _SENT_IN_HISTORY)
        if ordinal < _SENT_IN_HISTORY:
            days = int(HISTORY_DAYS * (1 - (1 - (ordinal + 0.5) / _SENT_IN_HISTORY) ** 1.25))
        sent = self.start + days * DAY + (9 + draw % 8) * 3600 + (draw >> 4 & 3) * 900
        month = dt.datetime.fromtimestamp(sent, dt.UTC).strftime("%B %Y")
        subject, opening = (text.format(month=month) for text in pick("campaigns", ordinal))
        links = [pick("links", ordinal + position) for position in range(2 + draw % 3)]
        return Campaign(
            campaign_id=41_000 + ordinal * 7 + (draw >> 8) % 5,
            name=subject,
            subject=subject,
            body=self._body(opening, links),
            lists=_list_ids(pick("campaign_lists", ordinal)),
            created_at=sent - 24 * DAY - draw % 40_000,
            scheduled_at=sent - 12 * DAY - draw % 30_000,
            sent_at=sent,
            links=links,
            appeal=800 + (draw >> 12) % 420,
            has_coupon="coupon" in (subject + opening).lower(),
            from_name=self.business,
        )

    def _body(self, opening: str, links: Links) -> str:
        anchors = "".join(f'<p><a href="{url}">{text}</a></p>' for url, text in links)
        return (
            f"<html><body><h1>{self.business}</h1><p>Hello "
            f"[first_name],</p><p>{opening}</p>{anchors}<p>[unsubscribe]</p></body></html>"
        )

    def _drafts(self) -> Iterable[Campaign]:
        first, body = self.start + 90 * DAY + 40_000, self._body("", ())
        for place, subject in enumerate(WORDS["drafts"]):
            yield Campaign(
                47_000 + place * 3,
                subject,
                subject,
                body,
                (),
                first + place * 170 * DAY,
                from_name=self.business,
            )

    def _automations(self) -> Iterable[Campaign]:
        for place, one in enumerate(WORDS["automations"]):
            yield Campaign(
                campaign_id=52_000 + place * 11,
                name=one["name"],
                subject=one["subject"],
                body=self._body(one["subject"] + ".", WORDS["links"][:2]),
                lists=_list_ids(one["lists"]),
                created_at=self.start + (20 + place * 45) * DAY + 36_000,
                links=WORDS["links"][place : place + 2],
                trigger=one,
                is_automated=True,
                from_name=self.business,
            )


def _list_ids(numbers: Iterable[int]) -> tuple[int, ...]:
    return tuple(list_id(number) for number in numbers)


def _calibrated(origin: Origin, start: int) -> list[Roll]:
    """Rolls of which exactly `contacts` entries stand at the base: the larger lists make up for deletions and
    rounding."""
    rolls = [
        Roll(origin.seed, number, int(origin.contacts * one["share"]), start)
        for number, one in enumerate(WORDS["lists"])
    ]
    for number in (0, 1, 2):
        for _ in range(20):
            missing = origin.contacts - sum(
                roll.registered(origin.base) - roll.deleted(origin.base) for roll in rolls
            )
            if not missing:
                return rolls
            rolls[number] = Roll(origin.seed, number, rolls[number].size + missing, start)
    return rolls
