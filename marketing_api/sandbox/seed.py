"""What seeded things are made of: chance, the vocabulary of the business (`words.toml`), and how its dates
and times are written."""

import datetime as dt
import functools
import hashlib
import tomllib
import unicodedata
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

DAY = 86_400


def salt(seed: int, *names: object) -> int:
    """32 bits that differ for every seed and name: the start of an independent series of draws."""
    text = repr((seed, *names)).encode()
    return int.from_bytes(hashlib.blake2b(text, digest_size=4).digest(), "big")


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
