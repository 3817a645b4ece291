"""The vocabulary of the seeded business and the things it owns, as `words.toml` has it."""

import tomllib
import unicodedata
from pathlib import Path
from typing import Any

Thing = dict[str, Any]
WORDS: Thing = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))


def _plain(name: str) -> tuple[str, str]:
    folded = unicodedata.normalize("NFKD", name.replace("ø", "o").replace("ł", "l").replace("Ł", "L").replace("ß", "ss"))
    return name, "".join(letter for letter in folded.lower() if "a" <= letter <= "z")


for names in ("first_names", "last_names"):
    WORDS[names] = [_plain(name) for name in WORDS[names].split()]


def pick(kind: str, draw: int) -> Any:
    return WORDS[kind][draw % len(WORDS[kind])]
