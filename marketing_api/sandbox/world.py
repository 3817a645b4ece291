"""Everything that one key can see: the account, its contacts, and the shelves of the other areas.

Belongs here: creating the parts and finding campaigns and lists among them. Not here: rules of reads and writes.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace

from marketing_api.sandbox import seeds
from marketing_api.sandbox.campaign_book import Campaign
from marketing_api.sandbox.seeded_account import Account, Clock, Origin
from marketing_api.sandbox.seeds import Feed, Reviews, Shelf
from marketing_api.sandbox.subscribers import Activity, Subscribers


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
        self._campaign_ids = itertools.count(60_001)
        self.businesses = Shelf(lambda now: seeds.businesses(account, now), 4901)
        self.users = Shelf(lambda now: seeds.users(account, now), 6901)
        self.managers = Shelf(lambda now: seeds.managers(account, now), 7901)
        self.groups = Shelf(lambda now: seeds.groups(account, now), 8901)
        self.goals = Shelf(lambda now: seeds.goals(account, now), 3901)
        self.webhooks = Shelf(lambda now: seeds.webhooks(account, now), 5901)
        self.reviews = Reviews(account)
        self.deleted_reviews: set[int] = set()
        self.feed = Feed(account)
        self.posts = Shelf(self.feed.posts, 990_001)
        self.links = Shelf(self.feed.links, 995_001)

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
