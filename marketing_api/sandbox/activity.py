"""What contacts did with mails, and the totals of campaigns: the seeded outcomes, corrected by what was written.

A seeded contact stops receiving at its `quiet_from`; contacts on a list by a write receive what is sent to it during their
periods. Contact by contact and in the totals the same outcomes are used. Not here: how a timeline is shown (`timelines`).
"""

from __future__ import annotations

import bisect
from collections.abc import Iterator

from marketing_api.sandbox.account import Account
from marketing_api.sandbox.campaign_book import Campaign
from marketing_api.sandbox.chance import salt, spread
from marketing_api.sandbox.mailing import Outcome, Totals, clicks
from marketing_api.sandbox.people import contact_id, roll_and_index
from marketing_api.sandbox.roll import DAY
from marketing_api.sandbox.subscribers import Card, Subscribers

_OPENS = 360  # of 1024: contacts on a list by a write


class Activity:
    """Outcomes by contact and by campaign. Times are unix seconds of the account's clock."""

    def __init__(self, account: Account, subscribers: Subscribers) -> None:
        self._account = account
        self._subscribers = subscribers
        self._salt = salt(account.origin.seed, "guests")

    def received(self, wanted: int, now: int) -> list[tuple[Campaign, Outcome]]:
        """Every campaign sent to the contact by `now`, oldest first."""
        card = self._subscribers.cards.get(wanted)
        number, index = roll_and_index(wanted)
        found: list[tuple[Campaign, Outcome]] = []
        if card is None or card.is_seeded:
            last = now if card is None else min(now, card.quiet_from - 1)
            found = list(self._account.mailings[number].received(index, last))
        if card is not None:
            found += [(campaign, self._guest(wanted, campaign)) for campaign in self._sent_to(card) if campaign.sent_at <= now]
        return found

    def triggered(self, wanted: int, now: int) -> list[tuple[Campaign, Outcome]]:
        """Every automation that sent something to the contact by `now`."""
        card = self._subscribers.cards.get(wanted)
        number, index = roll_and_index(wanted)
        if card is not None:
            if not card.is_seeded:
                return []
            now = min(now, card.quiet_from - 1)
        slot = self._account.rolls[number].slot(index)
        return [
            (automation.campaign, outcome)
            for automation in self._account.automations[number]
            if (outcome := automation.outcome(index, slot)) is not None and outcome.sent_at <= now
        ]

    def _sent_to(self, card: Card) -> Iterator[Campaign]:
        for period in card.periods:
            sends = self._account.sends.get(period.list_id, [])
            for campaign in sends[bisect.bisect_left(sends, period.begins, key=lambda one: one.sent_at) :]:
                if campaign.sent_at >= period.ends:
                    break
                yield campaign

    def _guest(self, wanted: int, campaign: Campaign) -> Outcome:
        draw = spread(self._salt ^ campaign.campaign_id, wanted)
        if draw % 1024 >= _OPENS:
            return Outcome(campaign.sent_at)
        opened = campaign.sent_at + 60 + (draw >> 10) % DAY
        if not campaign.links or draw >> 5 & 7:
            return Outcome(campaign.sent_at, opened)
        return Outcome(campaign.sent_at, opened, opened + 90, clicks(draw, len(campaign.links)))

    def totals(self, campaign: Campaign, now: int) -> Totals:
        """The campaign's totals by `now`, over all its lists."""
        total = Totals()
        for mailings, automations in zip(self._account.mailings, self._account.automations, strict=True):
            total += mailings.totals(campaign.campaign_id, now)
            for automation in automations:
                if automation.campaign.campaign_id == campaign.campaign_id:
                    total += automation.totals(now)
        for _, outcome in self._suppressed(campaign, now):
            total += _counted(outcome, now, -1)
        for _, outcome in self._guests(campaign, now):
            total += _counted(outcome, now, 1)
        return total

    def clickers(self, campaign: Campaign, now: int) -> Iterator[tuple[int, tuple[tuple[int, int], ...]]]:
        """(contact id, clicks) of everybody who clicked by `now`."""
        gone = {wanted for wanted, _ in self._suppressed(campaign, now)}
        for mailings, automations in zip(self._account.mailings, self._account.automations, strict=True):
            number = mailings.roll.number
            found = [mailings.clickers(campaign.campaign_id, now)]
            found += [automation.clickers(now) for automation in automations if automation.campaign.campaign_id == campaign.campaign_id]
            for several in found:
                for index, clicked in several:
                    if (wanted := contact_id(number, index)) not in gone:
                        yield wanted, clicked
        for wanted, outcome in self._guests(campaign, now):
            if 0 < outcome.clicked_at <= now:
                yield wanted, outcome.clicks

    def _suppressed(self, campaign: Campaign, now: int) -> Iterator[tuple[int, Outcome]]:
        """Seeded outcomes that a write prevented."""
        for card in self._subscribers.cards.values():
            if not card.is_seeded or card.quiet_from > now:
                continue
            number, index = roll_and_index(card.contact_id)
            slot = self._account.rolls[number].slot(index)
            for automation in self._account.automations[number]:
                outcome = automation.outcome(index, slot) if automation.campaign.campaign_id == campaign.campaign_id else None
                if outcome is not None and card.quiet_from <= outcome.sent_at <= now:
                    yield card.contact_id, outcome
            if card.quiet_from <= campaign.sent_at <= now:
                for sent, outcome in self._account.mailings[number].received(index, now):
                    if sent.campaign_id == campaign.campaign_id:
                        yield card.contact_id, outcome

    def _guests(self, campaign: Campaign, now: int) -> Iterator[tuple[int, Outcome]]:
        if not campaign.sent_at or campaign.sent_at > now:
            return
        for card in self._subscribers.cards.values():
            for period in card.periods:
                if period.list_id in campaign.lists and period.begins <= campaign.sent_at < period.ends:
                    yield card.contact_id, self._guest(card.contact_id, campaign)


def _counted(outcome: Outcome, now: int, sign: int) -> Totals:
    return Totals(
        sent=sign,
        bounced=sign * (0 < outcome.bounced_at <= now),
        opened=sign * (0 < outcome.opened_at <= now),
        unsubscribed=sign * (0 < outcome.left_at <= now),
    )
