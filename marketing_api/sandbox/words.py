"""The vocabulary of the seeded business and the things it owns, as constants: the texts themselves stand in `words.toml`."""

import tomllib
import unicodedata
from collections.abc import Iterator
from pathlib import Path
from typing import Any

Thing = dict[str, Any]
_TEXTS: Thing = tomllib.loads(Path(__file__).with_name("words.toml").read_text(encoding="utf-8"))


def _plain(name: str) -> tuple[str, str]:
    """A name and its letters as they stand in an address."""
    folded = unicodedata.normalize("NFKD", name.replace("ø", "o").replace("ł", "l").replace("Ł", "L").replace("ß", "ss"))
    return name, "".join(letter for letter in folded.lower() if "a" <= letter <= "z")


FIRST_NAMES, LAST_NAMES = ([_plain(name) for name in _TEXTS[names].split()] for names in ("first_names", "last_names"))
CITIES: list[str] = _TEXTS["cities"]
BUSINESSES: list[tuple[str, str, str]] = _TEXTS["businesses"]
SITE = "https://www.example.com"
CHARACTER_SLOTS: list[tuple[int, Thing]] = _TEXTS["characters"]
DOMAINS: dict[str, list[str]] = _TEXTS["domains"]
LISTS: list[Thing] = _TEXTS["lists"]
LIST_TEXTS: dict[str, str] = _TEXTS["list_texts"]
AUDIENCES: list[str] = _TEXTS["audiences"]
FIELDS: list[str] = _TEXTS["fields"]
CAMPAIGNS: list[tuple[str, str]] = _TEXTS["campaigns"]
CAMPAIGN_LISTS: list[list[int]] = _TEXTS["campaign_lists"]
DRAFTS: list[str] = _TEXTS["drafts"]
AUTOMATIONS: list[Thing] = _TEXTS["automations"]
LINKS = tuple((url, text) for url, text in _TEXTS["links"])
GOOD: list[str] = _TEXTS["good_reviews"]
BAD: list[str] = _TEXTS["bad_reviews"]
NOTES: list[str] = _TEXTS["notes"]
REVIEW_CHANNELS: dict[str, str] = _TEXTS["review_channels"]
POSTS: list[tuple[str, str]] = _TEXTS["posts"]
PROFILES: dict[str, tuple[str, int, str]] = _TEXTS["profiles"]
STAFF: list[tuple[str, int, int]] = _TEXTS["staff"]


def things(kind: str, days: float) -> Iterator[tuple[int, Thing]]:
    """(id, thing) of those that the business owns after so many days of the account."""
    for thing in _TEXTS[kind]:
        if thing["day"] <= days:
            yield thing["id"], {name: value for name, value in thing.items() if name not in ("id", "day")}
