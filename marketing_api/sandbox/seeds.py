"""The small seeded things of an account by a moment, as (id, thing) pairs for their shelves.

Things hold plain values (unix seconds, numbers); how they are shown is their area's matter.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from marketing_api.sandbox.call import Call, missing
from marketing_api.sandbox.chance import salt, spread
from marketing_api.sandbox.roll import DAY, HISTORY_DAYS
from marketing_api.sandbox.seeded_account import Account, list_id
from marketing_api.sandbox.subscribers import field_id
from marketing_api.sandbox.words import BAD, FIELDS, FIRST_NAMES, GOOD, LAST_NAMES, LISTS, NOTES, POSTS, REVIEW_CHANNELS, SITE


def lists(account: Account, now: int) -> Iterator[tuple[int, Thing]]:
    """The contact lists."""
    for number, (name, _, title) in enumerate(LISTS):
        created = account.start + 8 * 3600 + number * 300
        if created > now:
            continue
        yield (
            list_id(number),
            {
                "name": name,
                "form_title": title,
                "email_subject": f"Please confirm: {name}",
                "reply_to": "hello@example.com",
                "from_email": "news@example.com",
                "from_name": account.business.name,
                "confirmation_email": "<p>Please confirm: [confirmation_url]</p>",
                "success_email": f"<p>Welcome to {name}!</p><p>[business_name], [business_address]</p>",
                "confirmation_message": "Almost there: look into your inbox.",
                "success_message": "Thank you & welcome!",
                "error_message": "That did not work, please try again.",
                "double_opt_in": number in (0, 2),
                "notify_email": "office@example.com" if number == 4 else "",
                "notify": "",
                "communications": "0",
                "created_at": created,
                "fields": {field_id(number, position): label for position, label in enumerate(FIELDS)},
            },
        )


def businesses(account: Account, now: int) -> Iterator[tuple[int, Thing]]:
    """The sub-accounts of the agency."""
    for place, (name, contact) in enumerate((("East Pier", "Ines Costa"), ("Old Mill", "Viktor Holm"))):
        opened = account.start + (60 + place * 200) * DAY
        if opened <= now:
            email = f"{contact.split()[0].lower()}@example.net"
            yield (
                account.business.business_id + 501 + place,
                {"name": f"{account.business.name} – {name}", "contact": contact, "email": email},
            )


_GROUPS = ("Administrators", "Marketing", "Front of house", "Shop")
_STAFF = (
    ("Helena Ortega", 0), ("Jonas Berg", 1), ("Priya Shah", 1), ("Theo Russo", 2), ("Mila Novak", None),
    ("Ines Costa", 0), ("Omar Haddad", 2), ("Viktor Holm", 0), ("Grace Lee", 3),
)  # fmt: skip


def groups(account: Account, _: int) -> Iterator[tuple[int, Thing]]:
    for place, name in enumerate(_GROUPS):
        yield 801 + place, {"name": name, "status": "Active"}


def users(account: Account, now: int) -> Iterator[tuple[int, Thing]]:
    """Five of the business, two of each sub-account, and a new one in every quarter."""
    main = account.business.business_id
    homes = [main] * 5 + [main + 501] * 2 + [main + 502] * 2
    for place, (name, group) in enumerate(_STAFF):
        yield (
            601 + place * 3,
            {
                "business": homes[place],
                "fullname": name,
                "username": name.lower().replace(" ", "."),
                "group": None if group is None else 801 + group,
                "status": "Active",
            },
        )
    for quarter in range(1, (now - account.start) // (91 * DAY) + 1):
        name = f"{FIRST_NAMES[quarter * 7 % len(FIRST_NAMES)][0]} {LAST_NAMES[quarter * 11 % len(LAST_NAMES)][0]}"
        leaves = account.start + (quarter * 91 + 400) * DAY
        yield (
            640 + quarter,
            {
                "business": main,
                "fullname": name,
                "username": f"user{quarter:03d}",
                "group": 803,
                "status": "Active" if now < leaves else "Disabled",
            },
        )


def managers(account: Account, _: int) -> Iterator[tuple[int, Thing]]:
    for place, name in enumerate(("Nora Lindberg", "Hassan Ali", "Greta Fischer")):
        email = f"{name.split()[0].lower()}.manager@example.org"
        yield 701 + place, {"fullname": name, "username": email, "email": email, "status": "Active" if place < 2 else "Disabled"}


#: Tracked domains, named by goals and webhooks.
DOMAINS = (21, 22)


def goals(account: Account, now: int) -> Iterator[tuple[int, Thing]]:
    """Six over two domains, made one after the other in the first year."""
    texts = (
        ("Table booked", "event", "links", "all", (f"{SITE}/book", f"{SITE}/book/thanks"), "80"),
        ("Menu downloaded", "event", "links", "any", (f"{SITE}/menu.pdf",), "2.5"),
        ("Three pages seen", "pages", "", "", (), "0"),
        ("Class booked", "url", "", "", (f"{SITE}/classes/thanks",), "45"),
        ("Video watched", "event", "videos", "any", (f"{SITE}/videos/dumplings",), "1"),
        ("Catering request", "event", "form", "", (), "250"),
    )
    for place, (name, kind, event, rule, links, value) in enumerate(texts):
        if account.start + place * 60 * DAY > now:
            continue
        has_action = place in (0, 5)
        yield (
            301 + place * 2,
            {
                "domainid": DOMAINS[place // 4],
                "name": name,
                "type": kind,
                "value_type": "variable" if value == "0" else "fixed",
                "value": value,
                "event_type": event,
                "goal_event_filter": rule,
                "event_links": list(links),
                "action": {"id": 31 + place, "name": "Add tag: guest" if place else "Send to list: Loyalty club"} if has_action else None,
            },
        )


def webhooks(account: Account, now: int) -> Iterator[tuple[int, Thing]]:
    """Five over the same domains."""
    texts = (
        ("Don't leave hungry", "page_exit", "html_msg", f"{SITE}/menu", "popup"),
        ("Newsletter form", "page_entry", "form", f"{SITE}/", "sticky_bar"),
        ("What shall we cook?", "page_entry", "poll", f"{SITE}/classes", "popup"),
        ("After booking", "goal_trigger", "redirection", f"{SITE}/book/thanks", "popup"),
        ("Shop exit", "page_exit", "html_msg", f"{SITE}/shop", "sticky_bar"),
    )
    for place, (name, kind, action, link, style) in enumerate(texts):
        if account.start + place * 90 * DAY <= now:
            yield (
                501 + place * 2,
                {
                    "name": name,
                    "type": kind,
                    "action_type": action,
                    "domainid": DOMAINS[place % 2],
                    "action_url": link,
                    "action_targetusers": ("all", "anonymous", "subscribers")[place % 3],
                    "action_devicefilter": ("all", "desktop", "mobile")[place % 3],
                    "action_frequency": "repeat" if place % 2 else "one_time",
                    "delay_hours": "0",
                    "delay_minutes": str(place),
                    "delay_seconds": str(place * 15 % 60),
                    "action_style": style,
                },
            )


Thing = dict[str, Any]


class Shelf:
    """`seeded` yields (id, thing) of everything that exists at a moment, oldest first; things may be changed by writes only."""

    def __init__(self, seeded: Callable[[int], Iterable[tuple[int, Thing]]], first_written_id: int) -> None:
        self._seeded = seeded
        self._ids = itertools.count(first_written_id)
        self._added: dict[int, Thing] = {}
        self._changes: dict[int, Thing] = {}
        self._deleted: set[int] = set()

    def all(self, now: int) -> dict[int, Thing]:
        """Every thing that stands, by id; added ones last."""
        found = {wanted: self._shown(wanted, thing) for wanted, thing in self._seeded(now) if wanted not in self._deleted}
        found.update((wanted, self._shown(wanted, thing)) for wanted, thing in self._added.items() if wanted not in self._deleted)
        return found

    def _shown(self, wanted: int, thing: Thing) -> Thing:
        changes = self._changes.get(wanted)
        return {**thing, **changes} if changes else thing

    def get(self, wanted: int, now: int) -> Thing | None:
        return self.all(now).get(wanted)

    def existing(self, call: Call, what: str) -> Thing:
        """The thing that the call names by `id`, or a Refusal that says what is missing."""
        if (thing := self.get(call.id(), call.now)) is None:
            raise missing(what)
        return thing

    def add(self, thing: Mapping[str, Any]) -> int:
        """Returns the new id."""
        new = next(self._ids)
        self._added[new] = dict(thing)
        return new

    def edit(self, wanted: int, changes: Mapping[str, Any]) -> None:
        self._changes.setdefault(wanted, {}).update(changes)

    def delete(self, wanted: int) -> None:
        self._deleted.add(wanted)


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


FIRST_ID = 70_000
_PER_DAY = 16  # ids kept for each day
NETWORKS = ("twitter", "facebook", "yelp", "foursquare", "googleplus", "pinterest")
#: Channels with reviews, the more often the more reviews; two of the eight have none.
_BUSY = ("Yelp", "Yelp", "Google Places", "Google Places", "Google Places", "TripAdvisor", "OpenTable", "Foursquare", "CitySearch")


class DirectReview(NamedTuple):
    review_id: int
    at: int
    email: str
    phone: str
    text: str
    notes: str
    is_good: bool


class OnlineReview(NamedTuple):
    at: int
    channel: str
    username: str
    text: str
    stars: int
    url: str


class Reviews:
    """Everything said about one business. Ranges are [first, end) in unix seconds."""

    def __init__(self, account: Account) -> None:
        self._account = account
        seed = account.origin.seed
        self._direct, self._online, self._said, self._counted = (salt(seed, name) for name in ("direct", "online", "said", "counted"))
        self._rate = min(6.0, 0.25 + account.origin.contacts / 3000)

    def _days(self, first: int, end: int, now: int) -> range:
        start = self._account.start
        return range(max(0, (first - start) // DAY), max(0, (min(end, now + 1) - start + DAY - 1) // DAY))

    def direct(self, first: int, end: int, now: int) -> Iterator[DirectReview]:
        """Private reviews, oldest first within a day's order of ids."""
        for day in self._days(first, end, now):
            for place in range(_times(self._rate, spread(self._direct, day))):
                review = self._one(day, place, now)
                if review is not None and first <= review.at < end:
                    yield review

    def one(self, review_id: int, now: int) -> DirectReview | None:
        """The private review with that id, if there is one by `now`."""
        day, place = divmod(review_id - FIRST_ID, _PER_DAY)
        exists = day >= 0 and place < _times(self._rate, spread(self._direct, day))
        return self._one(day, place, now) if exists else None

    def _one(self, day: int, place: int, now: int) -> DirectReview | None:
        number = day * _PER_DAY + place
        draw, more = spread(self._direct ^ 0x1234, number), spread(self._direct ^ 0x4321, number)
        at = self._account.start + day * DAY + 36_000 + draw % 43_200
        guests = self._account.rolls[0].registered(at)
        if at > now or not guests:
            return None
        person = self._account.people.of_contact(0, more % guests)
        is_good = draw >> 16 & 31 > 6
        text = GOOD[more % len(GOOD)] if is_good else BAD[more % len(BAD)]
        noted_at = at + DAY + (more >> 8) % (2 * DAY)  # notes are written a day to three later
        notes = NOTES[(more >> 4) % len(NOTES)] if (not is_good or more & 7 == 0) and noted_at <= now else ""
        return DirectReview(FIRST_ID + number, at, person.email, person.phone, text, notes, is_good)

    def online(self, now: int) -> Iterator[OnlineReview]:
        """Public reviews, oldest first."""
        for day in self._days(self._account.start, now, now):
            for place in range(_times(0.16, spread(self._online, day))):
                draw = spread(self._online ^ 0x77, day * 4 + place)
                at = self._account.start + day * DAY + draw % DAY
                if at <= now:
                    yield self._public(at, draw)

    def _public(self, at: int, draw: int) -> OnlineReview:
        channel = _BUSY[(draw >> 5) % len(_BUSY)]
        stars = (5, 5, 5, 4, 4, 4, 3, 2, 1, 5)[(draw >> 9) % 10]
        texts = GOOD if stars > 2 else BAD
        username = f"{FIRST_NAMES[(draw >> 3) % len(FIRST_NAMES)][0]} {LAST_NAMES[(draw >> 11) % len(LAST_NAMES)][0][0]}."
        url = f"https://reviews.example.org/{REVIEW_CHANNELS[channel]}/{draw:08x}"
        return OnlineReview(at, channel, username, texts[(draw >> 13) % len(texts)], stars, url)

    def mentions(self, first: int, end: int, now: int) -> Iterator[tuple[OnlineReview, str]]:
        """What was said elsewhere, with its polarity (positive, negative or neutral)."""
        for day in self._days(first, end, now):
            for place in range(_times(0.3, spread(self._said, day))):
                draw = spread(self._said ^ 0x99, day * 4 + place)
                at = self._account.start + day * DAY + draw % DAY
                if first <= at < end and at <= now:
                    said = self._public(at, draw)
                    yield said, "positive" if said.stars > 3 else "neutral" if said.stars == 3 else "negative"

    def counters(self, day: int) -> tuple[dict[str, int], int]:
        """(mentions by network, views of the feedback page) of the `day`-th day of the account."""
        mentions = {name: spread(self._counted ^ place, day) % (9, 14, 3, 2, 1, 4)[place] for place, name in enumerate(NETWORKS)}
        return mentions, 5 + spread(self._counted ^ 0x55, day) % 60

    def days(self, first: int, end: int, now: int) -> Iterator[tuple[int, int]]:
        """(number, unix second of its noon) of every day of the account whose noon lies in the range, up to a day after now.

        The noon tells the local date: local days that are 23 or 25 hours long move midnight, but never past it.
        """
        for day in self._days(first, end, now + DAY):
            if first <= (noon := self._account.start + day * DAY + DAY // 2) < end:
                yield day, noon


def _times(rate: float, draw: int) -> int:
    """How often something happens on a day, `rate` times on average."""
    spread_out = rate * (0.5 + (draw & 0xFFFF) / 0x10000)
    return min(int(spread_out) + ((draw >> 16) / 0x10000 < spread_out % 1), _PER_DAY)
