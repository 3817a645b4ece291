"""One account with everything in it: its time, contacts, and a shelf of each kind of thing that it owns, with
what stood there before anything was written. Not here: contacts (`subscribers`), campaigns
(`seeded_account`), public reviews (`reputation`)."""

import math
import time
from collections.abc import Callable, Iterator
from functools import partial

from marketing_api.sandbox.seed import DAY, WORDS, Thing, pick, salt, spread
from marketing_api.sandbox.seeded_account import Account, Origin, Shelf
from marketing_api.sandbox.seeded_contacts import HISTORY_DAYS, field_ids, list_id
from marketing_api.sandbox.subscribers import Activity, Subscribers

#: (id, thing) of everything that exists at a moment, oldest first.
Things = Iterator[tuple[int, Thing]]


def seeded_lists(account: Account, now: int) -> Things:
    for number, words in enumerate(WORDS["lists"]):
        if (created := account.start + 8 * 3600 + number * 300) <= now:
            texts = {
                member: text.format(name=words["name"], business=account.business)
                for member, text in WORDS["list_texts"].items()
            }
            fields = dict(zip(field_ids(number), WORDS["fields"], strict=True))
            yield list_id(number), {**words, **texts, "created_at": created, "fields": fields}


def owned(kind: str, account: Account, now: int) -> Things:
    """Those of `words.toml`, each from its day on."""
    for thing in WORDS[f"{kind}s"]:
        if account.start + thing["day"] * DAY <= now:
            yield thing["id"], WORDS["defaults"].get(kind, {}) | thing


def seeded_businesses(account: Account, now: int) -> Things:
    for offset, thing in owned("subaccount", account, now):
        yield account.business_id + offset, thing | {"name": f"{account.business} – {thing['name']}"}


def seeded_users(account: Account, now: int) -> Things:
    """Five of the business, two of each sub-account, and a new one in every quarter."""
    for place, (name, offset, group) in enumerate(WORDS["staff"]):
        username = name.lower().replace(" ", ".")
        yield 601 + place * 3, _user(account.business_id + offset, name, username, group)
    for quarter in range(1, (now - account.start) // (91 * DAY) + 1):
        name = f"{pick('first_names', quarter * 7)[0]} {pick('last_names', quarter * 11)[0]}"
        status = "Active" if now < account.start + (quarter * 91 + 400) * DAY else "Disabled"
        yield 640 + quarter, _user(account.business_id, name, f"user{quarter:03d}", 803, status)


def _user(business: int, name: str, username: str, group: int, status: str = "Active") -> Thing:
    return {"business": business, "fullname": name, "username": username, "group": group, "status": status}


_FIRST_POST_ID, _FIRST_LINK_ID, _FIRST_REVIEW_ID = 12_000, 88_000, 70_000
_REVIEWS_PER_DAY = 16  # ids kept for each day
#: The business began to post so long before the account's base, and posts every so many days.
_BEGAN = (HISTORY_DAYS - 150) * DAY
_EVERY = int(3.4 * DAY)


def channel(network: str, wanted: str = "") -> Thing:
    """To what a post on that network goes; `wanted` is an id."""
    targets = WORDS["profiles"][network]
    kind, known, name = next((each for each in targets if str(each[1]) == wanted), targets[0])
    shown = int(wanted) if wanted.isdecimal() else known
    return {"network": network, "type": kind, "id": shown, "name": name}


def seeded_posts(account: Account, now: int) -> Things:
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
        yield (
            _FIRST_POST_ID + place * 3,
            {
                "title": title,
                "message": text.format(link=short_url),
                "at": at,
                "channels": [channel(network) for network in networks],
                "photo": f"https://images.example.com/{place:04d}" if draw >> 14 & 1 else "",
                "shortenurl": short_url,
            },
        )


def seeded_links(account: Account, now: int) -> Things:
    """Short links of published posts; clicks only ever grow."""
    series = salt(account.origin.seed, "feed") ^ 0x62
    for post_id, post in seeded_posts(account, now):
        if not post["shortenurl"] or post["at"] > now:
            continue
        place = (post_id - _FIRST_POST_ID) // 3
        draw, part = spread(series, place), 1 - math.exp(-(now - post["at"]) / (6 * DAY))
        clicks = {
            one["network"]: int((20 + (draw >> at * 4) % 140) * part)
            for at, one in enumerate(post["channels"])
        }
        url = f"https://www.example.com/blog/{post_id}?from=social"
        yield _FIRST_LINK_ID + place, post | {"realurl": url, "clicks": clicks}


def events(account: Account, series: int, rate: float, now: int) -> Iterator[tuple[int, int]]:
    """(number of the day, which of the day) of what happens `rate` times a day on average, until today."""
    for day in range((now - account.start) // DAY + 1):
        draw = spread(series, day)
        spread_out = rate * (0.5 + (draw & 0xFFFF) / 0x10000)
        times = int(spread_out) + ((draw >> 16) / 0x10000 < spread_out % 1)
        yield from ((day, place) for place in range(min(times, _REVIEWS_PER_DAY)))


def seeded_reviews(account: Account, now: int) -> Things:
    """Private ones; notes are written a day to three later, more often to those who complain."""
    series, rate = salt(account.origin.seed, "direct"), min(6.0, 0.25 + account.origin.contacts / 3000)
    for day, place in events(account, series, rate, now):
        number = day * _REVIEWS_PER_DAY + place
        draw, more = spread(series ^ 0x1234, number), spread(series ^ 0x4321, number)
        at = account.start + day * DAY + 36_000 + draw % 43_200
        guests, is_good = account.rolls[0].registered(at), draw >> 16 & 31 > 6
        if at <= now and guests:
            person = account.people.of_contact(0, more % guests)
            is_noted = more & 7 == 0 if is_good else more & 3 > 0
            yield (
                _FIRST_REVIEW_ID + number,
                {
                    "at": at,
                    "email": person.email,
                    "phone": person.phone,
                    "inquiry": pick("good_reviews" if is_good else "bad_reviews", more),
                    "notes": pick("notes", more >> 4) if is_noted else "",
                    "noted_at": at + DAY + (more >> 8) % (2 * DAY),
                    "rating": "Good" if is_good else "Bad",
                },
            )


#: By kind, in the words of the service's messages: the seeded things, and the first id of written ones.
_KINDS: dict[str, tuple[Callable[[Account, int], Things], int]] = {
    "list": (seeded_lists, 2501),
    "sub-account": (seeded_businesses, 4901),
    "user": (seeded_users, 6901),
    "manager": (partial(owned, "manager"), 7901),
    "group": (partial(owned, "group"), 8901),
    "goal": (partial(owned, "goal"), 3901),
    "webhook": (partial(owned, "webhook"), 5901),
    "post": (seeded_posts, 990_001),
    "review": (seeded_reviews, 799_001),
    "link": (seeded_links, 995_001),
}


class World(Account):
    """What the rules read and write. Its time is the real one plus what it was advanced by, or stands still
    at `fixed`."""

    def __init__(self, origin: Origin, fixed: int | None) -> None:
        super().__init__(origin)
        self.fixed, self._advanced = fixed, 0
        self.subscribers = Subscribers(self)
        self.activity = Activity(self.subscribers)
        self.shelves: dict[str, Shelf[Thing]] = {
            kind: Shelf(partial(seeded, self), first_id) for kind, (seeded, first_id) in _KINDS.items()
        }

    def now(self) -> int:
        """The account's time, with all mailings by then known."""
        now = (int(time.time()) if self.fixed is None else self.fixed) + self._advanced
        self.plan(now)
        return now

    def advance(self, days: float) -> None:
        self._advanced += int(days * DAY)
