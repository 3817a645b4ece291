"""What seeded things are made of: chance, the vocabulary of the business (`words.toml`), and how its dates
and times are written.

Chance has no state: every draw is a pure function of the seed and of what is drawn, and picks can be counted
in closed form."""

import datetime as dt
import functools
import hashlib
import tomllib
import unicodedata
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

DAY = 86_400
#: Shares and probabilities are whole parts of this, so that counting and picking can never disagree by a
#: rounding error.
WHOLE = 1024


def salt(seed: int, *names: object) -> int:
    """32 bits that differ for every seed and name: the start of an independent series of draws."""
    text = repr((seed, *names)).encode()
    return int.from_bytes(hashlib.blake2b(text, digest_size=4).digest(), "big")


def spread(salt: int, index: int) -> int:
    """32 well-mixed bits for the `index`-th draw of a series."""
    mixed = (index + salt) * 0x9E3779B1 & 0xFFFFFFFF
    mixed = (mixed ^ mixed >> 15) * 0x85EBCA77 & 0xFFFFFFFF
    mixed = (mixed ^ mixed >> 13) * 0xC2B2AE35 & 0xFFFFFFFF
    return mixed ^ mixed >> 16


@dataclass(frozen=True, slots=True)
class Share:
    """Picks `parts`/1024 of a sequence, evenly spread; `offset` (0 … 1023) shifts which ones.

    How many of the first n are picked is a formula, and so is the t-th pick: a million need not be looked at.
    """

    parts: int
    offset: int

    def count(self, first: int) -> int:
        return (first * self.parts + self.offset) // WHOLE

    def has(self, index: int) -> bool:
        return self.count(index + 1) > self.count(index)

    def nth(self, ordinal: int) -> int:
        """The position of the `ordinal`-th pick, from 0."""
        return -((self.offset - (ordinal + 1) * WHOLE) // self.parts) - 1


@dataclass(frozen=True, slots=True)
class Shuffle:
    """A one-to-one map of 0 … length-1 onto itself, in both directions; `stride` has no divisor in common
    with the length."""

    length: int
    stride: int
    shift: int

    def place(self, index: int) -> int:
        return (index * self.stride + self.shift) % self.length

    def at(self, place: int) -> int:
        """The index that stands at `place`."""
        return (place - self.shift) * pow(self.stride, -1, self.length) % self.length


Thing = dict[str, Any]
WORDS: Thing = tomllib.loads(Path(__file__).with_name("words.toml").read_text(encoding="utf-8"))


def _plain(name: str) -> tuple[str, str]:
    folded = unicodedata.normalize(
        "NFKD", name.replace("ø", "o").replace("ł", "l").replace("Ł", "L").replace("ß", "ss")
    )
    return name, "".join(letter for letter in folded.lower() if "a" <= letter <= "z")


for names in ("first_names", "last_names"):
    WORDS[names] = [_plain(name) for name in WORDS[names].split()]


def pick(kind: str, draw: int) -> Any:
    return WORDS[kind][draw % len(WORDS[kind])]


#: Of local date-times: what stands before the first blank is the day.
_FORMS = {"24h": "%m/%d/%Y %H:%M", "12h": "%m/%d/%Y %I:%M %p", "iso-12h": "%Y-%m-%d %I:%M %p"}


class Moments:
    """How the service writes moments (unix seconds): local to the account (observation 21)."""

    def __init__(self, zone: str) -> None:
        self.zone = ZoneInfo(zone)

    def unix(self, moment: dt.datetime) -> int:
        return int(moment.replace(tzinfo=self.zone).timestamp())

    def midnight(self, day: dt.date) -> int:
        return self.unix(dt.datetime.combine(day, dt.time()))

    def date(self, moment: int) -> dt.date:
        return dt.datetime.fromtimestamp(moment, self.zone).date()

    def text(self, moment: int, form: str = "24h") -> str:
        """The moment in the form that the place has by the specification."""
        return self.day(moment, _FORMS[form])

    def day(self, moment: int, form: str = "%m/%d/%Y") -> str:
        return _text(moment, self.zone, form)


@functools.lru_cache(maxsize=20_000)
def _text(moment: int, zone: ZoneInfo, form: str) -> str:
    return dt.datetime.fromtimestamp(moment, zone).strftime(form)
