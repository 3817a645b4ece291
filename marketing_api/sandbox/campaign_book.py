"""The seeded campaigns: what is mailed to which lists, when each was written, scheduled and sent.

Their calendar goes on for ever, so that advancing the clock keeps producing sends."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass

from marketing_api.sandbox.chance import salt, spread
from marketing_api.sandbox.moments import DAY
from marketing_api.sandbox.seeded_contacts import HISTORY_DAYS
from marketing_api.sandbox.words import AUTOMATIONS, CAMPAIGN_LISTS, CAMPAIGNS, DRAFTS, LINKS

FIRST_ID = 41_000
FIRST_DRAFT_ID = 47_000
FIRST_AUTOMATION_ID = 52_000
SENT_IN_HISTORY = 20

#: (address, text) each.
Links = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Trigger:
    """An automation's rule: what it sends, to whom, how long after registration."""

    kind: str  # email or sms
    after: int  # seconds since registration
    characters: list[str]
    steps: int
    actions: str


@dataclass(frozen=True, slots=True)
class Campaign:
    """One mailing. `lists` are list ids; `sent_at` is 0 for a draft; times are unix seconds."""

    campaign_id: int
    name: str
    subject: str
    body: str
    lists: tuple[int, ...]
    created_at: int
    scheduled_at: int = 0
    sent_at: int = 0
    links: Links = ()
    appeal: int = 1024  # of 1024: how much better or worse than usual it is opened
    has_coupon: bool = False
    trigger: Trigger | None = None
    reply_to: str = "hello@example.com"
    from_email: str = "news@example.com"
    from_name: str = ""
    audiences: tuple[int, ...] = ()
    is_automated: bool = False
    ended_at: int = 1 << 40  # when an automation was deleted

    @property
    def slug(self) -> str:
        return f"c{self.campaign_id}-" + "-".join(word for word in self.subject.lower().split() if word.isalpha())[:24].rstrip("-")

    def group(self, moment: int) -> str:
        """The status group it stands in at `moment`."""
        if self.is_automated:
            return "Automation"
        if not self.sent_at or moment < self.scheduled_at:
            return "Draft"
        return "Sent" if self.sent_at <= moment else "Scheduled"


class CampaignBook:
    """The seeded campaigns of an account. `list_ids` are the ids of the seeded lists, by number."""

    def __init__(self, seed: int, start: int, list_ids: list[int], business: str) -> None:
        self._start = start
        self._list_ids = list_ids
        self._business = business
        self._salt = salt(seed, "campaigns")
        self._standard: list[Campaign] = []
        self._fixed = self._drafts() + self._automations()

    def until(self, moment: int) -> list[Campaign]:
        """Every seeded campaign created by `moment`, in order of creation within each kind."""
        while not self._standard or self._standard[-1].created_at <= moment:
            self._standard.append(self._campaign(len(self._standard)))
        return [campaign for campaign in self._standard + self._fixed if campaign.created_at <= moment]

    def _campaign(self, ordinal: int) -> Campaign:
        draw = spread(self._salt, ordinal)
        # Days from the start to a send: ever closer together within the history, every eighth day after it.
        days = HISTORY_DAYS + 6 + 8 * (ordinal - SENT_IN_HISTORY)
        if ordinal < SENT_IN_HISTORY:
            days = int(HISTORY_DAYS * (1 - (1 - (ordinal + 0.5) / SENT_IN_HISTORY) ** 1.25))
        sent = self._start + days * DAY + (9 + draw % 8) * 3600 + (draw >> 4 & 3) * 900
        month = dt.datetime.fromtimestamp(sent, dt.UTC).strftime("%B %Y")
        subject, opening = (text.format(month=month) for text in CAMPAIGNS[ordinal % len(CAMPAIGNS)])
        links = tuple(LINKS[(ordinal + position) % len(LINKS)] for position in range(2 + draw % 3))
        return Campaign(
            campaign_id=FIRST_ID + ordinal * 7 + (draw >> 8) % 5,
            name=subject,
            subject=subject,
            body=self._body(opening, links),
            lists=tuple(self._list_ids[number] for number in CAMPAIGN_LISTS[ordinal % len(CAMPAIGN_LISTS)]),
            created_at=sent - 24 * DAY - draw % 40_000,
            scheduled_at=sent - 12 * DAY - draw % 30_000,
            sent_at=sent,
            links=links,
            appeal=800 + (draw >> 12) % 420,
            has_coupon="coupon" in (subject + opening).lower(),
            from_name=self._business,
        )

    def _body(self, opening: str, links: Links) -> str:
        anchors = "".join(f'<p><a href="{url}">{text}</a></p>' for url, text in links)
        return f"<html><body><h1>{self._business}</h1><p>Hello [first_name],</p><p>{opening}</p>{anchors}<p>[unsubscribe]</p></body></html>"

    def _drafts(self) -> list[Campaign]:
        first, body = self._start + 90 * DAY + 40_000, self._body("", ())
        return [
            Campaign(FIRST_DRAFT_ID + place * 3, subject, subject, body, (), first + place * 170 * DAY, from_name=self._business)
            for place, subject in enumerate(DRAFTS)
        ]

    def _automations(self) -> list[Campaign]:
        return [
            Campaign(
                campaign_id=FIRST_AUTOMATION_ID + place * 11,
                name=one["name"],
                subject=one["subject"],
                body=self._body(one["subject"] + ".", LINKS[:2]),
                lists=tuple(self._list_ids[number] for number in one["lists"]),
                created_at=self._start + (20 + place * 45) * DAY + 36_000,
                links=LINKS[place : place + 2],
                trigger=Trigger(one["kind"], one["after"], one["characters"], one["steps"], one["actions"]),
                is_automated=True,
                from_name=self._business,
            )
            for place, one in enumerate(AUTOMATIONS)
        ]
