"""The seeded reviews, mentions and counters of the business: a stream per kind, each day's entries a pure function of the day.

Not here: how they are asked for and shown (`reputation`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from marketing_api.sandbox.account import Account
from marketing_api.sandbox.chance import salt, spread
from marketing_api.sandbox.roll import DAY
from marketing_api.sandbox.words import BAD, FIRST_NAMES, GOOD, LAST_NAMES, NOTES, REVIEW_CHANNELS

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
