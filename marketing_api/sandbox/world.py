"""One account with everything in it: its time, contacts, and a shelf of each kind of thing that it owns, with
what stood there before anything was written. Not here: contacts (`subscribers`), campaigns
(`seeded_account`), reviews (`reputation`)."""

import functools
import itertools
import math
import time
from collections.abc import Callable, Iterator

from marketing_api.sandbox.seed import DAY, WORDS, Thing, pick, salt, spread
from marketing_api.sandbox.seeded_account import Account, Origin
from marketing_api.sandbox.seeded_contacts import HISTORY_DAYS, field_ids, list_id
from marketing_api.sandbox.subscribers import Activity, Subscribers

#: (id, thing) of everything that exists at a moment, oldest first.
Seeded = Callable[[Account, int], Iterator[tuple[int, Thing]]]


class Shelf:
    """Things of one kind; only writes change them. Ids of written things begin at `first_written_id`, above
    all seeded ones."""

    def __init__(self, account: Account, name: str, seeded: Seeded, first_written_id: int) -> None:
        self.name = name
        self._account = account
        self._seeded = seeded
        self._first = first_written_id
        self._ids = itertools.count(first_written_id)
        self._written: dict[int, Thing | None] = {}  # None: deleted

    def all(self, now: int) -> dict[int, Thing]:
        """Every thing that stands, by id; added ones last."""
        found = dict(self._seeded(self._account, now))
        for wanted, written in self._written.items():
            if written is None:
                found.pop(wanted, None)
            elif wanted in found or wanted >= self._first:
                found[wanted] = found.get(wanted, {}) | written
        return found

    def add(self, thing: Thing) -> int:
        new = next(self._ids)
        self._written[new] = thing
        return new

    def edit(self, wanted: int, changes: Thing) -> None:
        self._written[wanted] = (self._written.get(wanted) or {}) | changes

    def delete(self, wanted: int) -> None:
        self._written[wanted] = None


def seeded_lists(account: Account, now: int) -> Iterator[tuple[int, Thing]]:
    for number, words in enumerate(WORDS["lists"]):
        if (created := account.start + 8 * 3600 + number * 300) <= now:
            texts = {
                member: text.format(name=words["name"], business=account.business)
                for member, text in WORDS["list_texts"].items()
            }
            fields = dict(zip(field_ids(number), WORDS["fields"], strict=True))
            yield list_id(number), {**words, **texts, "created_at": created, "fields": fields}


def owned(kind: str, account: Account, now: int) -> Iterator[tuple[int, Thing]]:
    """Those of `words.toml`, each from its day on."""
    for thing in WORDS[kind]:
        if account.start + thing["day"] * DAY <= now:
            yield thing["id"], {name: value for name, value in thing.items() if name not in ("id", "day")}


def seeded_businesses(account: Account, now: int) -> Iterator[tuple[int, Thing]]:
    for offset, thing in owned("subaccounts", account, now):
        yield account.business_id + offset, thing | {"name": f"{account.business} – {thing['name']}"}


def seeded_users(account: Account, now: int) -> Iterator[tuple[int, Thing]]:
    """Five of the business, two of each sub-account, and a new one in every quarter."""

    def user(offset: int, name: str, username: str, group: int, status: str = "Active") -> Thing:
        home = account.business_id + offset
        return {"business": home, "fullname": name, "username": username, "group": group, "status": status}

    for place, (name, offset, group) in enumerate(WORDS["staff"]):
        yield 601 + place * 3, user(offset, name, name.lower().replace(" ", "."), group)
    for quarter in range(1, (now - account.start) // (91 * DAY) + 1):
        name = f"{pick('first_names', quarter * 7)[0]} {pick('last_names', quarter * 11)[0]}"
        leaves = account.start + (quarter * 91 + 400) * DAY
        yield (
            640 + quarter,
            user(0, name, f"user{quarter:03d}", 803, "Active" if now < leaves else "Disabled"),
        )


_FIRST_POST_ID, _FIRST_LINK_ID = 12_000, 88_000
#: The business began to post so long before the account's base, and posts every so many days.
_BEGAN = (HISTORY_DAYS - 150) * DAY
_EVERY = int(3.4 * DAY)


def channel(network: str, wanted: str = "") -> Thing:
    """To what a post on that network goes; `wanted` is an id."""
    targets = WORDS["profiles"][network]
    kind, known, name = next((each for each in targets if str(each[1]) == wanted), targets[0])
    return {
        "network": network,
        "type": kind,
        "id": int(wanted) if wanted.isdecimal() else known,
        "name": name,
    }


def seeded_posts(account: Account, now: int) -> Iterator[tuple[int, Thing]]:
    """Every post planned by `now`: those of the next four to five weeks, and all of the past."""
    series, began = salt(account.origin.seed, "feed"), account.start + _BEGAN
    for place in range(max(0, (now + 36 * DAY - began) // _EVERY + 1)):
        draw = spread(series, place)
        at = began + place * _EVERY + draw % (8 * 3600)
        at -= at % 900
        if at - 28 * DAY - draw % (7 * DAY) > now:
            continue
        title, text = pick("posts", draw)
        short_url = f"https://go.example.com/{spread(series ^ 0x31, place):06x}" if "{link}" in text else ""
        networks = ["facebook", *["twitter"] * (not draw >> 8 & 3), *["linkedin"] * (not draw >> 10 & 7)]
        thing = {
            "title": title,
            "message": text.format(link=short_url),
            "at": at,
            "channels": [channel(network) for network in networks],
            "photo": f"https://images.example.com/{place:04d}" if draw >> 14 & 1 else "",
            "short_url": short_url,
        }
        yield _FIRST_POST_ID + place * 3, thing


def seeded_links(account: Account, now: int) -> Iterator[tuple[int, Thing]]:
    """Short links of published posts; clicks only ever grow."""
    series = salt(account.origin.seed, "feed") ^ 0x62
    for post_id, post in seeded_posts(account, now):
        if not post["short_url"] or post["at"] > now:
            continue
        place = (post_id - _FIRST_POST_ID) // 3
        draw, part = spread(series, place), 1 - math.exp(-(now - post["at"]) / (6 * DAY))
        link = {name: post[name] for name in ("short_url", "message", "at")}
        link["real_url"] = f"https://www.example.com/blog/{post_id}?from=social"
        link["clicks"] = {
            one["network"]: int((20 + (draw >> at * 4) % 140) * part)
            for at, one in enumerate(post["channels"])
        }
        yield _FIRST_LINK_ID + place, link


class World:
    """What the rules read and write. Its time is the real one plus what it was advanced by, or stands still
    at `fixed`."""

    def __init__(self, origin: Origin, fixed: int | None) -> None:
        self.fixed, self._advanced = fixed, 0
        self.account = Account(origin)
        self.subscribers = Subscribers(self.account)
        self.activity = Activity(self.subscribers)
        self.deleted_reviews: set[int] = set()
        shelf = functools.partial(Shelf, self.account)
        self.lists = shelf("list", seeded_lists, 2501)
        self.businesses = shelf("sub-account", seeded_businesses, 4901)
        self.users = shelf("user", seeded_users, 6901)
        self.managers = shelf("manager", functools.partial(owned, "managers"), 7901)
        self.groups = shelf("group", functools.partial(owned, "groups"), 8901)
        self.goals = shelf("goal", functools.partial(owned, "goals"), 3901)
        self.webhooks = shelf("webhook", functools.partial(owned, "webhooks"), 5901)
        self.posts = shelf("post", seeded_posts, 990_001)
        self.links = shelf("link", seeded_links, 995_001)

    def now(self) -> int:
        """The account's time, with all mailings by then known."""
        now = (int(time.time()) if self.fixed is None else self.fixed) + self._advanced
        self.account.plan(now)
        return now

    def advance(self, days: float) -> None:
        self._advanced += int(days * DAY)
