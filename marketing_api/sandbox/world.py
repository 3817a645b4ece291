"""One account: its time, and everything in it by kind. Not here: who its seed makes of contacts and
campaigns (`seeded_account`)."""

import datetime as dt
import itertools
import random
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from marketing_api.sandbox.seed import DAY, WORDS, Moments, Thing
from marketing_api.sandbox.seeded_account import (
    AHEAD_DAYS,
    HISTORY_DAYS,
    draw_moment,
    field_ids,
    list_id,
    make_campaigns,
    make_contacts,
)
from marketing_api.sandbox.subscribers import Campaign, Subscribers

_DAYS = HISTORY_DAYS + AHEAD_DAYS
#: Kinds of things that `words.toml` has in full.
_KINDS = ("audience", "user", "manager", "group", "goal", "webhook")


@dataclass(frozen=True, slots=True)
class Origin:
    """What determines an account: it shows exactly `contacts` contacts at `base` (unix seconds),
    two years after its start."""

    seed: int
    contacts: int
    base: int
    timezone: str


def list_channels(network: str) -> dict[str, Thing]:
    """To what a post on that network can go, by id."""
    return {
        entry["id"]: {
            "network": network,
            "type": {"companies": "company"}.get(kind, kind.removesuffix("s")),
            "id": entry["id"],
            "name": entry["name"],
        }
        for kind, entries in WORDS["channels"][network.title()].items()
        if kind != "count"
        for entry in entries
    }


def find_channel(network: str, channel_id: str = "") -> Thing:
    """The page or profile of that id; else the network's first one, under that id."""
    channels = list_channels(network)
    first = next(iter(channels.values()))
    return channels.get(channel_id, first | {"id": channel_id or first["id"]})


class World:
    """What the rules read and write. Its time is the real one, or always `fixed`, plus the time by
    which it was advanced."""

    def __init__(self, origin: Origin, fixed: int | None = None, as_observed: bool = False) -> None:
        self.origin = origin
        self.fixed = fixed
        self.as_observed = as_observed
        self._advanced = 0
        self.moments = Moments(origin.timezone)
        first_day = self.moments.date(origin.base) - dt.timedelta(days=HISTORY_DAYS)
        self.start = self.moments.midnight(first_day)
        self.business_id = 4000 + origin.seed % 1000
        self.business: Thing = WORDS["businesses"][origin.seed % len(WORDS["businesses"])]
        self.chance = chance = random.Random(origin.seed)
        self.ids = itertools.count(900_000_001)  # of what is added
        self.subscribers = Subscribers(
            make_contacts(chance, origin.contacts, self.start, origin.base)
        )
        campaigns = make_campaigns(chance, self.start, self.business["businessName"])
        self.campaigns = {campaign.campaign_id: campaign for campaign in campaigns}
        for campaign in self.campaigns.values():
            campaign.send(chance, self.subscribers.contacts.values())
        posts = dict(self._make_posts())
        #: By kind, in the words of the service's messages, and id; each is there from its `since`
        #: on.
        self.things: dict[str, dict[int, Thing]] = {
            **{kind: self._read_words(kind) for kind in _KINDS},
            "sub-account": self._read_words("subaccount", self.business_id),
            "list": dict(self._make_lists()),
            "post": posts,
            "link": {
                one: post | {"since": post["at"]}
                for one, post in posts.items()
                if post["shortenurl"]
            },
            "review": dict(self._make_reviews()),
            "online review": dict(self._make_opinions(0.16)),
            "mention": dict(self._make_opinions(0.3)),
            "day": dict(self._make_days(first_day)),
        }
        #: Writes that take effect later, by the real clock, and how much later (observation 6).
        self.sync_delay_s = 3.0 if self.observes("sync-delay") else 0.0
        self.queue: list[tuple[float, Callable[[], None]]] = []

    def observes(self, behaviour: str) -> bool:
        """Whether it behaves as clients of the live service have met it; docs/sandbox.md has the
        list."""
        return self.as_observed

    def now(self) -> int:
        return (int(time.time()) if self.fixed is None else self.fixed) + self._advanced

    def advance(self, days: float) -> None:
        self._advanced += int(days * DAY)

    def settle(self, real: float) -> None:
        """Queued writes take effect that are due by then."""
        for entry in [one for one in self.queue if one[0] <= real]:
            self.queue.remove(entry)
            entry[1]()

    def find_things(self, kind: str, now: int) -> dict[int, Thing]:
        return {
            thing_id: thing
            for thing_id, thing in self.things[kind].items()
            if thing["since"] <= now
        }

    def find_campaigns(self, now: int) -> dict[int, Campaign]:
        return {
            key: campaign for key, campaign in self.campaigns.items() if campaign.created_at <= now
        }

    def schedule(self, campaign: Campaign, now: int) -> None:
        """Add it; the recipients of one that is not yet sent are drawn again."""
        self.campaigns[campaign.campaign_id] = campaign
        campaign.cancel(now)
        if campaign.sent_at >= now and not campaign.is_automated:
            campaign.send(self.chance, self.subscribers.contacts.values())

    # what its seed has

    def _make_days(self, first_day: dt.date) -> Iterator[tuple[int, Thing]]:
        """Mentions by network, and views of the feedback page."""
        networks = WORDS["mention_networks"]
        for number in range(_DAYS):
            day = first_day + dt.timedelta(days=number)
            mentions = {name: self.chance.randrange(most) for name, most in networks.items()}
            yield (
                number,
                {
                    "since": self.moments.midnight(day),
                    "periode": str(day),
                    "mentions": mentions,
                    "views": str(self.chance.randrange(5, 65)),
                },
            )

    def _make_lists(self) -> Iterator[tuple[int, Thing]]:
        for number, words in enumerate(WORDS["lists"]):
            texts = {
                member: text.format(name=words["name"], business=self.business["businessName"])
                for member, text in WORDS["list_texts"].items()
            }
            fields = dict(zip(field_ids(number), WORDS["fields"], strict=True))
            yield list_id(number), {**words, **texts, "since": self.start, "fields": fields}

    def _read_words(self, kind: str, first_id: int = 0) -> dict[int, Thing]:
        """Those of `words.toml`, each from its day on."""
        default = WORDS["defaults"].get(kind, {})
        return {
            first_id + one["id"]: {**default, **one, "since": self.start + one["day"] * DAY}
            for one in WORDS[f"{kind}s"]
        }

    def _make_posts(self) -> Iterator[tuple[int, Thing]]:
        """The business posts since the last 150 days of the history, and plans some weeks ahead."""
        chance = self.chance
        for day in range(HISTORY_DAYS - 150, _DAYS, 3):
            at = draw_moment(chance, self.start, day)
            post_id = 12_000 + day
            title, text = chance.choice(WORDS["posts"])
            short_url = ""
            if "{link}" in text:
                short_url = f"https://go.example.com/{post_id}"
            networks = chance.choice(WORDS["post_networks"])
            yield (
                post_id,
                {
                    "title": title,
                    "message": text.format(link=short_url),
                    "at": at,
                    "since": at - 30 * DAY,
                    "channels": [find_channel(network) for network in networks],
                    "photo": chance.choice(("", f"https://images.example.com/{post_id}")),
                    "shortenurl": short_url,
                    "realurl": f"https://www.example.com/blog/{post_id}?from=social",
                    "clicks": {network: chance.randrange(20, 160) for network in networks},
                },
            )

    def _make_opinions(self, rate: float) -> Iterator[tuple[int, Thing]]:
        """What people write `rate` times a day on average, oldest first. One day shortly before the
        account's first one is busy, so that reports have something unusual to show."""
        chance = self.chance
        ids = itertools.count(70_000)
        for day in range(_DAYS):
            times = int(rate * chance.uniform(0.5, 1.5) + chance.random())
            if day == HISTORY_DAYS - 2:
                times += 10
            for at in sorted(draw_moment(chance, self.start, day) for _ in range(times)):
                stars = chance.choice(WORDS["stars"])
                texts = WORDS["good_reviews" if stars > 2 else "bad_reviews"]
                opinion = {
                    "at": at,
                    "since": at,
                    "channel": chance.choice(WORDS["busy_review_channels"]),
                    "stars": stars,
                    "inquiry": chance.choice(texts),
                    "author": chance.choice(WORDS["first_names"]),
                }
                yield next(ids), opinion

    def _make_reviews(self) -> Iterator[tuple[int, Thing]]:
        """Private ones, of guests; notes are written a day to three later, more often to those who
        complain."""
        chance = self.chance
        guests = [*self.subscribers.contacts.values()]
        for review_id, opinion in self._make_opinions(min(6.0, 0.25 + self.origin.contacts / 3000)):
            guest = chance.choice(guests)
            is_good = opinion["stars"] > 2
            is_noted = chance.random() < (0.12 if is_good else 0.5)
            yield (
                review_id,
                opinion
                | {
                    "email": guest.email,
                    "phone": list(guest.values.values())[2],
                    "notes": chance.choice(WORDS["notes"]) if is_noted else "",
                    "noted_at": opinion["at"] + chance.randrange(DAY, 3 * DAY),
                    "rating": "Good" if is_good else "Bad",
                },
            )
