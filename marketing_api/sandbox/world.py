"""One account with everything in it: what its seed has, what was written, and its clock."""

from __future__ import annotations

import time

from marketing_api.sandbox import shelves
from marketing_api.sandbox.moments import DAY
from marketing_api.sandbox.seeded_account import Account, Origin
from marketing_api.sandbox.shelves import Seeded, Shelf
from marketing_api.sandbox.subscribers import Activity, Subscribers


class Clock:
    """The account's time: real time plus what it was advanced by, or standing still at `fixed`."""

    def __init__(self, fixed: int | None = None) -> None:
        self.fixed, self.advanced = fixed, 0

    def now(self) -> int:
        return (int(time.time()) if self.fixed is None else self.fixed) + self.advanced

    def advance(self, days: float) -> None:
        self.advanced += int(days * DAY)


class World:
    """What the rules read and write."""

    def __init__(self, origin: Origin, clock: Clock) -> None:
        self.clock = clock
        self.account = Account(origin)
        self.subscribers = Subscribers(self.account)
        self.activity = Activity(self.account, self.subscribers)
        self.deleted_reviews: set[int] = set()

        def shelf(name: str, seeded: Seeded, first_written_id: int) -> Shelf:
            return Shelf(name, self.account, seeded, first_written_id)

        self.lists = shelf("list", shelves.lists, 2501)
        self.businesses = shelf("sub-account", shelves.businesses, 4901)
        self.users = shelf("user", shelves.users, 6901)
        self.managers = shelf("manager", shelves.owned("managers"), 7901)
        self.groups = shelf("group", shelves.owned("groups"), 8901)
        self.goals = shelf("goal", shelves.owned("goals"), 3901)
        self.webhooks = shelf("webhook", shelves.owned("webhooks"), 5901)
        self.posts = shelf("post", shelves.posts, 990_001)
        self.links = shelf("link", shelves.links, 995_001)

    def now(self) -> int:
        """The account's time, with all mailings by then known."""
        now = self.clock.now()
        self.account.plan(now)
        return now
