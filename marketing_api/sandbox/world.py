"""Everything that one key can see: the account, its contacts, and the shelves of the other areas.

Belongs here: creating the parts and finding campaigns and lists among them. Not here: rules of reads and writes.
"""

from __future__ import annotations

from collections.abc import Iterator

from marketing_api.sandbox import seeds
from marketing_api.sandbox.account import Account, Clock, Origin
from marketing_api.sandbox.activity import Activity
from marketing_api.sandbox.campaign_book import Campaign
from marketing_api.sandbox.shelf import Shelf
from marketing_api.sandbox.subscribers import Subscribers


class World:
    """One account with everything in it."""

    def __init__(self, origin: Origin, clock: Clock) -> None:
        self.clock = clock
        self.account = Account(origin)
        self.subscribers = Subscribers(self.account)
        self.activity = Activity(self.account, self.subscribers)
        account = self.account
        self.lists = Shelf(lambda now: seeds.lists(account, now), 2501)
        self.deleted_campaigns: set[int] = set()
        self.changed_campaigns: dict[int, Campaign] = {}

    def now(self) -> int:
        """The account's time, with all mailings by then known."""
        now = self.clock.now()
        self.account.plan(now)
        return now

    def campaigns(self, now: int) -> Iterator[Campaign]:
        """Every campaign that can be seen, oldest first within each kind."""
        seeded = (self.changed_campaigns.get(one.campaign_id, one) for one in self.account.book.until(now))
        for campaign in [*seeded, *self.account.written.values()]:
            if campaign.campaign_id not in self.deleted_campaigns:
                yield campaign

    def campaign(self, wanted: int, now: int) -> Campaign | None:
        return next((campaign for campaign in self.campaigns(now) if campaign.campaign_id == wanted), None)
