"""The seeded social posts and short links: a post every few days on one to three networks, planned weeks ahead.

Not here: how they are asked for and shown (`social`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from marketing_api.sandbox.account import Account
from marketing_api.sandbox.chance import salt, spread
from marketing_api.sandbox.roll import DAY, HISTORY_DAYS
from marketing_api.sandbox.shelf import Thing
from marketing_api.sandbox.words import POSTS, SITE

_FIRST_POST_ID = 12_000
_FIRST_LINK_ID = 88_000
#: The business began to post so long before the account's base, and posts every so many days.
_BEGAN = (HISTORY_DAYS - 150) * DAY
_EVERY = int(3.4 * DAY)
#: network → (what it is posted to, id, name)
PROFILES = {
    "facebook": ("page", 104_233_551, "Our page"),
    "twitter": ("profile", 5_501, "@ourkitchen"),
    "linkedin": ("profile", 7_702, "Our kitchen"),
    "pinterest": ("profile", 9_903, "Recipes"),
    "instagram": ("profile", 8_804, "ourkitchen"),
}


def channel(network: str, channel_id: int = 0) -> dict[str, Any]:
    """To what a post on that network goes."""
    kind, known, name = PROFILES[network]
    return {"network": network, "type": kind, "id": channel_id or known, "name": name}


class Feed:
    """The seeded posts of one account by any moment."""

    def __init__(self, account: Account) -> None:
        self._account = account
        self._salt = salt(account.origin.seed, "feed")

    def posts(self, now: int) -> Iterator[tuple[int, Thing]]:
        """Every post planned by `now`: those of the next four to five weeks, and all of the past."""
        began = self._account.start + _BEGAN
        for place in range(max(0, (now + 36 * DAY - began) // _EVERY + 1)):
            draw = spread(self._salt, place)
            at = began + place * _EVERY + draw % (8 * 3600)
            at -= at % 900
            if at - 28 * DAY - draw % (7 * DAY) <= now:
                yield _FIRST_POST_ID + place * 3, self._post(place, draw, at)

    def _post(self, place: int, draw: int, at: int) -> Thing:
        title, text = POSTS[draw % len(POSTS)]
        networks = ["facebook", *(["twitter"] if draw >> 8 & 3 == 0 else []), *(["linkedin"] if draw >> 10 & 7 == 0 else [])]
        return {
            "title": title,
            "message": text.format(link=self.short_url(place)),
            "at": at,
            "channels": [channel(network) for network in networks],
            "photo": f"https://images.example.com/{place:04d}" if draw >> 14 & 1 else "",
            "link_place": place if "{link}" in text else None,
        }

    def short_url(self, place: int) -> str:
        return f"https://go.example.com/{spread(self._salt ^ 0x31, place):06x}"

    def links(self, now: int) -> Iterator[tuple[int, Thing]]:
        """Short links of published posts; clicks only ever grow."""
        for post_id, post in self.posts(now):
            place = post["link_place"]
            if place is None or post["at"] > now:
                continue
            draw = spread(self._salt ^ 0x62, place)
            part = 1 - math.exp(-(now - post["at"]) / (6 * DAY))
            clicks = {one["network"]: int((20 + (draw >> at * 4) % 140) * part) for at, one in enumerate(post["channels"])}
            yield (
                _FIRST_LINK_ID + place,
                {
                    "short_url": self.short_url(place),
                    "real_url": f"{SITE}/blog/{post_id}?from=social",
                    "message": post["message"],
                    "at": post["at"],
                    "clicks": clicks,
                },
            )
