"""One account with everything in it: its time, contacts, campaigns, and a shelf of each kind of thing that it
owns. Not here: who its seed makes of contacts and campaigns (`seeded_account`)."""

import datetime as dt
import itertools
import random
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Generic, NamedTuple, TypeVar

from marketing_api.sandbox.mailing import Campaign, Mailings, mail_contact
from marketing_api.sandbox.seed import DAY, WORDS, Moments, Thing, pick
from marketing_api.sandbox.seeded_account import (
    AHEAD_DAYS,
    HISTORY_DAYS,
    Origin,
    field_ids,
    list_id,
    make_campaigns,
    make_contacts,
)
from marketing_api.sandbox.subscribers import Contact, Subscribers

T = TypeVar("T")
#: (id, since when it is there, thing).
Seeded = Iterator[tuple[int, int, Thing]]


class Shelf(Generic[T]):
    """Things of one kind that an account owns, oldest first, of the time ahead too; `ids` are those of
    written things, above all seeded ones."""

    def __init__(self, seeded: Iterable[tuple[int, int, T]], first_id: int) -> None:
        self.ids = itertools.count(first_id)
        self._things = {thing_id: (since, thing) for thing_id, since, thing in seeded}

    def all(self, now: int) -> dict[int, T]:
        """Every thing that is there, by id."""
        return {thing_id: thing for thing_id, (since, thing) in self._things.items() if since <= now}

    def put(self, thing_id: int, thing: T | None) -> None:
        """None: it is deleted."""
        if thing is None:
            del self._things[thing_id]
        else:
            self._things[thing_id] = self._things.get(thing_id, (0, thing))[0], thing

    def add(self, thing: T) -> int:
        new = next(self.ids)
        self.put(new, thing)
        return new


class Public(NamedTuple):
    """A public review or mention."""

    at: int
    channel: str
    stars: int
    text: str
    author: str


def channel(network: str, wanted: str = "") -> Thing:
    """To what a post on that network goes; `wanted` is an id."""
    targets = WORDS["profiles"][network]
    kind, known, name = next((one for one in targets if str(one[1]) == wanted), targets[0])
    shown = int(wanted) if wanted.isdecimal() else known
    return {"network": network, "type": kind, "id": shown, "name": name}


class World:
    """What the rules read and write. Its time is the real one plus what it was advanced by, or stands still
    at `fixed`."""

    def __init__(self, origin: Origin, fixed: int | None) -> None:
        self.origin, self.fixed, self._advanced = origin, fixed, 0
        moments = Moments(origin.timezone)
        self.start = moments.midnight(moments.date(origin.base) - dt.timedelta(days=HISTORY_DAYS))
        self.business_id = 4000 + origin.seed % 1000
        self.business, self.contact, self.service_name = pick("businesses", origin.seed)
        contacts, self.mailings = make_contacts(origin, self.start), Mailings()
        campaigns = list(make_campaigns(origin.seed, self.start, self.business))
        self.campaigns = Shelf(((one.campaign_id, one.created_at, one) for one in campaigns), 60_001)
        chance, by_list = random.Random(origin.seed + 2), defaultdict[int, list[Campaign]](list)
        for campaign in campaigns:
            if campaign.sent_at or campaign.is_automated:
                self.mailings.add(campaign)
            for one in campaign.lists:
                by_list[one].append(campaign)
        for contact in contacts:
            mail_contact(chance, contact, by_list[contact.list_id], self.mailings)
        self.subscribers = Subscribers(
            contacts, lambda contact_id, now: self.mailings.stop(now, contact_id=contact_id)
        )
        self.reviews_online = list(self._public(0.16))
        self.mentions = list(self._public(0.3))
        guests = [contact for contact in contacts if contact.list_id == list_id(0)]
        posts = {thing_id: (since, thing) for thing_id, since, thing in self._posts()}
        #: By kind, in the words of the service's messages.
        self.shelves: dict[str, Shelf[Thing]] = {
            "list": Shelf(self._lists(), 2501),
            "sub-account": Shelf(self._businesses(), 4901),
            "user": Shelf(self._users(), 6901),
            "manager": Shelf(self._owned("manager"), 7901),
            "group": Shelf(self._owned("group"), 8901),
            "goal": Shelf(self._owned("goal"), 3901),
            "webhook": Shelf(self._owned("webhook"), 5901),
            "post": Shelf(((post_id, *post) for post_id, post in posts.items()), 990_001),
            "review": Shelf(self._reviews(guests), 799_001),
            "link": Shelf(self._links(posts), 995_001),
        }

    def now(self) -> int:
        return (int(time.time()) if self.fixed is None else self.fixed) + self._advanced

    def advance(self, days: float) -> None:
        self._advanced += int(days * DAY)

    def put_campaign(self, campaign: Campaign, now: int) -> None:
        """Add or change it; who receives one that is still to be sent is drawn anew."""
        self.campaigns.put(campaign.campaign_id, campaign)
        self.mailings.stop(now, campaign.campaign_id)
        if campaign.sent_at >= now:
            self.mailings.send(campaign, self.subscribers.contacts.values())
        else:
            self.mailings.add(campaign)

    def delete_campaign(self, campaign: Campaign, now: int) -> None:
        """It shows no more; what was not sent yet never will be."""
        self.campaigns.put(campaign.campaign_id, None)
        self.mailings.stop(now, campaign.campaign_id)

    # what its seed has

    def _lists(self) -> Seeded:
        for number, words in enumerate(WORDS["lists"]):
            created = self.start + 8 * 3600 + number * 300
            texts = {
                member: text.format(name=words["name"], business=self.business)
                for member, text in WORDS["list_texts"].items()
            }
            fields = dict(zip(field_ids(number), WORDS["fields"], strict=True))
            yield list_id(number), created, {**words, **texts, "created_at": created, "fields": fields}

    def _owned(self, kind: str) -> Seeded:
        """Those of `words.toml`, each from its day on."""
        for thing in WORDS[f"{kind}s"]:
            since = self.start + thing["day"] * DAY
            yield thing["id"], since, WORDS["defaults"].get(kind, {}) | thing

    def _businesses(self) -> Seeded:
        for offset, since, thing in self._owned("subaccount"):
            yield self.business_id + offset, since, thing | {"name": f"{self.business} – {thing['name']}"}

    def _users(self) -> Seeded:
        """Five of the business, two of each sub-account, and a new one in every quarter."""
        for place, (name, offset, group) in enumerate(WORDS["staff"]):
            username = name.lower().replace(" ", ".")
            yield 601 + place * 3, 0, _user(self.business_id + offset, name, username, group)
        for quarter in range(1, (HISTORY_DAYS + AHEAD_DAYS) // 91):
            name = f"{pick('first_names', quarter * 7)[0]} {pick('last_names', quarter * 11)[0]}"
            status = "Disabled" if quarter < 4 else "Active"
            user = _user(self.business_id, name, f"user{quarter:03d}", 803, status)
            yield 640 + quarter, self.start + quarter * 91 * DAY, user

    def _posts(self) -> Seeded:
        """The business posts since the last 150 days of the history, and plans some weeks ahead."""
        chance, at = random.Random(self.origin.seed + 3), self.start + (HISTORY_DAYS - 150) * DAY
        for place in range((150 + AHEAD_DAYS) * 10 // 34):
            published = at + place * 34 * DAY // 10 + chance.randrange(32) * 900
            title, text = chance.choice(WORDS["posts"])
            short_url = f"https://go.example.com/{chance.randrange(1 << 32):06x}" if "{link}" in text else ""
            networks = ["facebook"]
            networks += ["twitter"] * (chance.random() < 0.25) + ["linkedin"] * (chance.random() < 0.12)
            post = {
                "title": title,
                "message": text.format(link=short_url),
                "at": published,
                "channels": [channel(network) for network in networks],
                "photo": f"https://images.example.com/{place:04d}" if chance.random() < 0.5 else "",
                "shortenurl": short_url,
                "clicks": {network: chance.randrange(20, 160) for network in networks},
            }
            yield 12_000 + place * 3, published - chance.randrange(28 * DAY, 35 * DAY), post

    def _links(self, posts: dict[int, tuple[int, Thing]]) -> Seeded:
        """Short links of published posts."""
        for post_id, (_, post) in posts.items():
            if post["shortenurl"]:
                url = f"https://www.example.com/blog/{post_id}?from=social"
                yield 76_000 + post_id, post["at"], post | {"realurl": url}

    def _moments(self, chance: random.Random, rate: float) -> Iterator[int]:
        """When something happens that does so `rate` times a day on average. One day shortly before the
        account's first one is busy, so that reports have something unusual to show."""
        for day in range(HISTORY_DAYS + AHEAD_DAYS):
            times = int(rate * chance.uniform(0.5, 1.5) + chance.random())
            times += 10 * (day == HISTORY_DAYS - 2)
            yield from sorted(self.start + day * DAY + chance.randrange(DAY) for _ in range(times))

    def _public(self, rate: float) -> Iterator[Public]:
        """What is written in public channels, oldest first."""
        chance = random.Random(self.origin.seed + rate)
        for at in self._moments(chance, rate):
            stars = chance.choice(WORDS["stars"])
            text = chance.choice(WORDS["good_reviews" if stars > 2 else "bad_reviews"])
            author = f"{chance.choice(WORDS['first_names'])[0]} {chance.choice(WORDS['last_names'])[0][0]}."
            yield Public(at, chance.choice(WORDS["busy_review_channels"]), stars, text, author)

    def _reviews(self, guests: list[Contact]) -> Seeded:
        """Private ones; notes are written a day to three later, more often to those who complain."""
        chance = random.Random(self.origin.seed + 4)
        rate = min(6.0, 0.25 + self.origin.contacts / 3000)
        for place, at in enumerate(self._moments(chance, rate)):
            guest, is_good = chance.choice(guests), chance.random() < 0.8
            is_noted = chance.random() < (0.12 if is_good else 0.5)
            review = {
                "at": at,
                "email": guest.email,
                "phone": guest.values[field_ids(0)[2]],
                "inquiry": chance.choice(WORDS["good_reviews" if is_good else "bad_reviews"]),
                "notes": chance.choice(WORDS["notes"]) if is_noted else "",
                "noted_at": at + DAY + chance.randrange(2 * DAY),
                "rating": "Good" if is_good else "Bad",
            }
            yield 70_000 + place, at, review


def _user(business: int, name: str, username: str, group: int, status: str = "Active") -> Thing:
    return {"business": business, "fullname": name, "username": username, "group": group, "status": status}
