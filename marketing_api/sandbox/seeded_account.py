"""An account as its seed has it: its business, the registers of its lists, its people, campaigns and
mailings; and written campaigns beside the seeded ones, since both are sent. Not here: what was written to
contacts (`subscribers`) and what else it owns (`world`).

The seeded calendar goes on for ever, so that advancing the clock keeps producing sends."""

import datetime as dt
import functools
import itertools
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

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


T = TypeVar("T")


class Shelf(Generic[T]):
    """Things of one kind that an account owns: the seeded ones, overlaid with what was written.

    `seeded` gives (id, thing) of all that stand at a moment, oldest first; `ids` are those of written things,
    above all seeded ones. Not here: contacts, of which there may be a million (`subscribers`)."""

    def __init__(self, seeded: Callable[[int], Iterable[tuple[int, T]]], first_id: int) -> None:
        self.ids = itertools.count(first_id)
        #: Is asked for often in one moment.
        self._seeded = functools.lru_cache(maxsize=1)(lambda now: dict(seeded(now)))
        self._written: dict[int, T | None] = {}  # None: deleted

    def all(self, now: int) -> dict[int, T]:
        """Every thing that stands, by id; added ones last."""
        found = self._seeded(now) | self._written
        return {wanted: thing for wanted, thing in found.items() if thing is not None}

    def put(self, wanted: int, thing: T | None) -> None:
        self._written[wanted] = thing

    def add(self, thing: T) -> int:
        new = next(self.ids)
        self.put(new, thing)
        return new


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
        self.campaigns = Shelf(self._seeded_campaigns, 60_001)
        self._deleted: list[Campaign] = []  # which were sent, or are automations
        self._sent = functools.cache(self._sent_campaign)
        self._unsent = [*self._drafts(), *self._automations()]
        self._replan(origin.base)

    def plan(self, moment: int) -> None:
        """Make sure that all mailings by `moment` are known; cheap when they are."""
        if moment + 15 * DAY > self._planned_until:
            self._replan(moment)

    def _replan(self, moment: int) -> None:
        """After a campaign was written: the past stays, the future is planned anew."""
        self._planned_until = moment + _AHEAD
        campaigns = [*self.campaigns.all(self._planned_until + _AHEAD).values(), *self._deleted]
        sends = sorted(
            (one for one in campaigns if one.sent_at), key=lambda one: (one.sent_at, one.campaign_id)
        )
        self.mailings: list[list[Mailing]] = []
        self.automations: list[list[Automation]] = []
        for roll in self.rolls:
            wanted, seed = list_id(roll.number), self.origin.seed
            here = [one for one in sends if wanted in one.lists]
            times = [one.sent_at for one in here]
            automations = [one for one in campaigns if one.trigger and wanted in one.lists]
            self.mailings.append([Mailing(roll, seed, one, place, times) for place, one in enumerate(here)])
            self.automations.append([Automation(roll, seed, one) for one in automations])

    def put_campaign(self, campaign: Campaign, now: int) -> None:
        self.campaigns.put(campaign.campaign_id, campaign)
        self._replan(now)

    def delete_campaign(self, campaign: Campaign, now: int) -> None:
        """It shows no more; what was not sent yet never will be."""
        self.campaigns.put(campaign.campaign_id, None)
        if campaign.is_automated or campaign.sent_at <= now:
            self._deleted.append(replace(campaign, ended_at=now))
        self._replan(now)

    # seeded campaigns

    def _seeded_campaigns(self, now: int) -> Iterator[tuple[int, Campaign]]:
        """In order of creation within each kind."""
        every = map(self._sent, itertools.count())
        for one in (*itertools.takewhile(lambda one: one.created_at <= now, every), *self._unsent):
            if one.created_at <= now:
                yield one.campaign_id, one

    def _sent_campaign(self, ordinal: int) -> Campaign:
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

    def _drafts(self) -> Iterator[Campaign]:
        first, body = self.start + 90 * DAY + 40_000, self._body("", ())
        for place, subject in enumerate(WORDS["drafts"]):
            wanted, created = 47_000 + place * 3, first + place * 170 * DAY
            yield Campaign(wanted, subject, subject, body, (), created, from_name=self.business)

    def _automations(self) -> Iterator[Campaign]:
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
    return tuple(map(list_id, numbers))


def _calibrated(origin: Origin, start: int) -> list[Roll]:
    """Rolls of which exactly `contacts` entries stand at the base: the larger lists make up for deletions and
    rounding."""
    rolls = [
        Roll(origin.seed, number, int(origin.contacts * one["share"]), start)
        for number, one in enumerate(WORDS["lists"])
    ]
    for number, _ in itertools.product((0, 1, 2), range(20)):
        shown = sum(roll.registered(origin.base) - roll.deleted(origin.base) for roll in rolls)
        if shown == origin.contacts:
            break
        rolls[number] = Roll(origin.seed, number, rolls[number].size + origin.contacts - shown, start)
    return rolls
