"""Texts, addresses and ratings as people and their software write them."""

import random
from dataclasses import dataclass

NAMES = [
    "ada",
    "bela",
    "chloe",
    "dmitri",
    "eun",
    "farid",
    "greta",
    "hugo",
    "ines",
    "jomo",
    "kaya",
    "liam",
    "mina",
    "noor",
    "olga",
    "pablo",
]
WORDS = [
    "offer",
    "table",
    "summer",
    "menu",
    "friendly",
    "late",
    "garden",
    "price",
    "booking",
    "welcome",
    "thanks",
    "service",
    "quick",
]

#: Texts that have broken readers before: each must come out exactly as it went in.
WILD = [
    "emoji 👩‍👩‍👧 and flags 🇩🇪, astral 𝔘𝔫𝔦",
    "العربية and עברית, mixed \u202eright-to-left\u202c",
    "combining e\u0301, zero\u200bwidth, bom \ufeff inside",
    "line one\nline two\r\nline three\ttabbed",
    "controls \x01\x02\x1b[31m\x1f and \x7f and \x85 and \u2028\u2029 end",
    "\"double\" and 'single' and `back` and \\ backslash \\n not a newline",
    '<p class="x">Tom &amp; Jerry &lt;b&gt;</p><script>alert(1)</script> [BUSINESS_NAME]',
    "'); drop table contacts; --",
    "%s %d {0} {name} ${HOME} $(id) %2F+%20",
    'comma, semicolon; pipe| and a,b,"c"',
    "007",
    "1e5",
    "null",
    "N/A",
    "true",
    "[]",
    '{"a": [1, 2]}',
    "=cmd|' /C calc'!A0",
]

#: Addresses that need care in a query string.
ODD_ADDRESSES = [
    "o'neil+tag@example.com",
    "a&b=c@example.org",
    "50%#off@example.net",
    "MiXed.Case@Example.com",
    "münchen@example.org",
]

#: No address at all, though the service keeps it in that field; there is nothing to look coupons up by.
NO_ADDRESSES = ["", "not an address", "+15550100"]

#: The text of an online review's rating and the number in it, when it holds exactly one.
PHP_RATINGS: list[tuple[str, float | None]] = [
    ("i:4;", 4.0),
    ("d:4.5;", 4.5),
    ('s:1:"3";', 3.0),
    ('a:1:{s:5:"value";i:5;}', 5.0),
    ("a:1:{i:0;d:3.5;}", 3.5),
    ('a:1:{s:6:"rating";s:3:"2.5";}', 2.5),
    ('a:2:{s:4:"text";s:5:"été";s:5:"stars";i:4;}', 4.0),
    ('a:2:{s:3:"max";i:5;s:5:"value";i:4;}', None),
    ('a:1:{s:3:"sub";a:1:{s:5:"stars";i:2;}}', 2.0),
    ("a:0:{}", None),
    ("N;", None),
]
JSON_RATINGS: list[tuple[str, float | None]] = [
    ('{"value": 4}', 4.0),
    ('{"value": "4.5", "text": "good"}', 4.5),
    ("[3]", 3.0),
    ("[3, 4]", None),
    ("{}", None),
]
PLAIN_RATINGS: list[tuple[str, float | None]] = [("5", 5.0), ("3.5", 3.5), ("0", 0.0)]
GARBAGE_RATINGS: list[tuple[str, float | None]] = [
    ('a:1:{s:5:"value";i:', None),
    ("five stars", None),
    ("****", None),
    ("{broken", None),
    ("", None),
]


@dataclass
class Texts:
    """Draws texts; `wild` mixes in the ones above and very long ones."""

    rng: random.Random
    wild: bool = False

    def line(self, words: int = 3) -> str:
        if self.wild and self.rng.random() < 0.5:
            return self.rng.choice(WILD)
        return " ".join(self.rng.choice(WORDS) for _ in range(words)).capitalize()

    def body(self) -> str:
        if self.wild and self.rng.random() < 0.1:
            return "".join(self.rng.choice(["ß", "long ", "👍", "\n", '"']) for _ in range(60_000))
        return ". ".join(self.line(6) for _ in range(self.rng.randint(1, 4)))

    def maybe(self, share: float = 0.7) -> str:
        return self.line() if self.rng.random() < share else ""

    def address(self, number: int) -> str:
        return f"{self.rng.choice(NAMES)}.{number}@example.{self.rng.choice(['com', 'org', 'net'])}"

    def link(self, number: int) -> str:
        tail = "?q=" + "x" * 3000 if self.wild and self.rng.random() < 0.1 else ""
        odd = "/ärger 1" if self.wild and self.rng.random() < 0.2 else ""
        return f"https://shop.example.com/{self.rng.choice(WORDS)}/{number}{odd}{tail}"
