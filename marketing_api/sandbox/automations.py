"""What automations send: each contact of its lists is sent one message a fixed time after registering, if of the right character.

As in `mailing`, a contact's outcome and the totals come from the same formulas. Uploaded contacts trigger nothing.
"""

from __future__ import annotations

from collections.abc import Iterator

from marketing_api.sandbox.campaign_book import Campaign, Trigger
from marketing_api.sandbox.chance import Share, salt, spread
from marketing_api.sandbox.mailing import Outcome, Totals, clicks
from marketing_api.sandbox.roll import CHARACTERS, DAY, SLOTS, Roll

#: Openings come within this time of sending, and clicks within another twenty minutes.
_LONGEST = 2 * DAY


class Automation:
    """One automation on one list."""

    def __init__(self, roll: Roll, seed: int, campaign: Campaign, trigger: Trigger) -> None:
        self.roll = roll
        self.campaign = campaign
        self.trigger = trigger
        self._salt = salt(seed, "automation", roll.number, campaign.campaign_id)
        self._slots = frozenset(slot for slot, character in enumerate(CHARACTERS) if character.name in trigger.characters)
        #: Below this index a contact was there before the automation, or was uploaded.
        self._from = max(roll.imported, roll.registered(campaign.created_at - trigger.after))

    def outcome(self, index: int, slot: int) -> Outcome | None:
        if slot not in self._slots or index < self._from or self.roll.is_deleted(index, self._sent_at(index)):
            return None
        sent = self._sent_at(index)
        if sent > self.campaign.ended_at:
            return None
        opens, clickers = self._shares(slot)
        block = index // SLOTS
        if self.trigger.kind == "sms" or not opens.has(block):
            return Outcome(sent)
        draw = spread(self._salt, index)
        opened = sent + 60 + draw % _LONGEST
        if not clickers.has(opens.count(block)):
            return Outcome(sent, opened)
        return Outcome(sent, opened, opened + 30 + draw % 1200, clicks(draw, len(self.campaign.links)))

    def _sent_at(self, index: int) -> int:
        return self.roll.registered_at(index) + self.trigger.after

    def _shares(self, slot: int) -> tuple[Share, Share]:
        draw = spread(self._salt, slot)
        character = CHARACTERS[slot]
        return Share(min(1000, character.opens * 5 // 4), draw & 1023), Share(character.clicks, draw >> 10 & 1023)

    def _range(self, slot: int, moment: int) -> range:
        """The blocks of a slot to which it was sent by `moment`."""
        after = CHARACTERS[slot].deleted_after
        if after and after <= self.trigger.after:
            return range(0)
        last = min(moment, self.campaign.ended_at) - self.trigger.after
        return range(self.roll.blocks_of_first(slot, self._from), self.roll.blocks(slot, last))

    def totals(self, moment: int) -> Totals:
        sent = opened = 0
        for slot in self._slots:
            blocks = self._range(slot, moment)
            if not blocks:
                continue
            sent += len(blocks)
            if self.trigger.kind != "sms":
                opened += self._opened(slot, blocks, moment)
        return Totals(sent=sent, opened=opened)

    def _opened(self, slot: int, blocks: range, moment: int) -> int:
        """The old ones by formula, those still within the longest delay one by one."""
        opens, _ = self._shares(slot)
        settled = min(max(blocks.start, self.roll.blocks(slot, moment - self.trigger.after - 60 - _LONGEST)), blocks.stop)
        total = opens.count(settled) - opens.count(blocks.start)
        for block in range(settled, blocks.stop):
            outcome = self.outcome(self.roll.index(slot, block), slot)
            total += outcome is not None and 0 < outcome.opened_at <= moment
        return total

    def clickers(self, moment: int) -> Iterator[tuple[int, tuple[tuple[int, int], ...]]]:
        """(index, clicks) of every contact that clicked by `moment`."""
        if self.trigger.kind == "sms":
            return
        for slot in self._slots:
            blocks = self._range(slot, moment)
            opens, clickers = self._shares(slot)
            first, last = clickers.count(opens.count(blocks.start)), clickers.count(opens.count(blocks.stop))
            for ordinal in range(first, last):
                index = self.roll.index(slot, opens.nth(clickers.nth(ordinal)))
                outcome = self.outcome(index, slot)
                if outcome is not None and 0 < outcome.clicked_at <= moment:
                    yield index, outcome.clicks
