"""Readers of settings and options: each converts a text, or raises ValueError that says what is
needed. Not here: the list of settings (`settings`)."""

import datetime as dt
import io
import json
import math
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TypeVar
from urllib.parse import unquote, urlsplit

from home.exits import WrongUse
from marketing_api.records.values import read_zone
from marketing_api.redaction import Secret
from marketing_api.service_address import normalize_address
from warehouse.policies import LEAST_KEY, Kept, PersonalData

T = TypeVar("T")
Word = TypeVar("Word", bound=str)

WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")


class SettingsError(WrongUse):
    """A setting is missing or malformed: the message names it and what to write."""


def did_you_mean(word: str, words: Iterable[str], prefix: str = "") -> str:
    """` (did you mean users?)`, or nothing if no word is similar."""
    return "".join(
        f" (did you mean {prefix}{near}?)" for near in get_close_matches(word, list(words), 1)
    )


def _make_reader(convert: Callable[[str], T], hint: str) -> Callable[[str], T]:
    """`convert`, with every error as a ValueError that gives the hint."""

    def read_text(text: str) -> T:
        try:
            return convert(text)
        except Exception:
            raise ValueError(hint) from None

    return read_text


def _make_matcher(matches: Callable[[str], object], hint: str) -> Callable[[str], str]:
    def check_text(text: str) -> str:
        if not matches(text):
            raise ValueError
        return text

    return _make_reader(check_text, hint)


def join_choices(words: Iterable[str]) -> str:
    """`keep, hash or drop`."""
    *first, last = words
    return f"{', '.join(first)} or {last}"


def _one_of(*words: Word) -> Callable[[str], Word]:
    """A word of these, in any case."""
    by_lower = {word.lower(): word for word in words}
    return _make_reader(lambda text: by_lower[text.lower()], f"{join_choices(words)} is needed")


def _check_range(least: float, number: float, most: float = math.inf) -> float:
    if not least <= number <= most:
        raise ValueError
    return number


def _make_secret_reader(matches: Callable[[str], object], message: str) -> Callable[[str], Secret]:
    """Its message does not quote the text, which may hold a password."""

    def read_secret(text: str) -> Secret:
        if not matches(text):
            raise SettingsError(message)
        return Secret(text)

    return read_secret


whole = _make_reader(lambda text: int(_check_range(0, int(text))), "not a whole number")
count = _make_reader(lambda text: int(_check_range(1, int(text))), "not a whole number above 0")
share = _make_reader(
    lambda text: _check_range(0, float(text.rstrip("% ")) / (100 if "%" in text else 1), 1),
    "not a share from 0 to 1; write it like 5% or 0.05",
)
clock_time = _make_reader(
    lambda text: dt.datetime.strptime(text.strip(), "%H:%M").time(),
    "not a time of day; write it like 06:00",
)
encoding = _make_reader(
    lambda text: io.TextIOWrapper(io.BytesIO(), text).encoding,
    "not a known encoding of texts; write it like windows-1252 or mac-roman",
)
day = _make_reader(dt.date.fromisoformat, "not a day; write it like 2026-01-31")
numbers = _make_reader(
    lambda text: tuple(whole(part) for part in text.split(",") if part.strip()),
    "not a whole number",
)
rate = _make_reader(lambda text: _check_range(1e-9, float(text)), "a number above 0 is needed")
zone = _make_reader(read_zone, "a time zone name is needed, like Europe/Berlin")
switch = _make_reader(lambda text: {"on": True, "off": False}[text.lower()], "on or off is needed")
kept = _make_reader(
    Kept.from_text,
    f"write what to change, with days or ever, like bodies=ever,logs=30; the defaults are {Kept()}",
)
personal_data = _one_of(*PersonalData)
tags = _make_reader(
    lambda text: json.dumps(dict(json.loads(text))),
    'a JSON object is needed, like {"team": "marketing"}',
)


def _cron_field(value: str) -> str:
    part = rf"([*?]|({value})(-({value}))?)(/\d+)?"
    return f"{part}(,{part})*"


_CRON_FIELDS = (
    r"[0-5]?\d",
    r"[01]?\d|2[0-3]",
    r"0?[1-9]|[12]\d|3[01]|l",
    r"0?[1-9]|1[0-2]|[a-z]{3}",
    r"l?[0-7](#[1-5])?|[a-z]{3}",
)
_CRON = re.compile(r"@[a-z]+|" + r"\s+".join(map(_cron_field, _CRON_FIELDS)), re.IGNORECASE)
_HOURS = re.compile(r"([^\s,=']+=)?\d{1,6}(,([^\s,=']+=)?\d{1,6})*")
_MEMORY = re.compile(r"[1-9]\d*(\.\d+)? ?[MG]i?B")
_FOLDER = re.compile(r"((?!://).)+")
_STORAGE_URL = re.compile(r"((?!://).)+|(file|s3|gs|gcs|abfss?|az)://\S+")
_MAILBOX = re.compile(r"[^\s@<>,;]+@[^\s@<>,;]+")
_PERSONAL_KEY = re.compile(f".{{{LEAST_KEY},}}")
_REDIS_URL = re.compile(r"(rediss?|unix)://\S+")
_hours = _make_matcher(
    _HOURS.fullmatch,
    "hours are needed, like 120, or by channel, like email=120,visit=24",
)
cron = _make_matcher(
    _CRON.fullmatch, "five fields are needed: minute, hour, day, month, weekday, like 0 2 * * *"
)
memory = _make_matcher(_MEMORY.fullmatch, "an amount of memory is needed, like 2GB or 800MB")
folder = _make_matcher(
    _FOLDER.fullmatch,
    "not a folder; restic or rclone take the backup to other machines",
)
storage_url = _make_matcher(
    _STORAGE_URL.fullmatch,
    "not a folder or an address like s3://BUCKET/FOLDER",
)
mailbox = _make_matcher(_MAILBOX.fullmatch, "a mail address is needed")
mailboxes = _make_reader(
    lambda text: tuple(mailbox(part.strip()) for part in text.split(",")),
    "mail addresses are needed, like ann@example.com, separated by commas",
)
mail_on = _one_of("nightly", *WEEKDAYS)
log_level = _one_of("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")
log_format = _one_of("text", "json")
personal_key = _make_secret_reader(
    _PERSONAL_KEY.fullmatch,
    f"MARKETING_PERSONAL_KEY is too short: use at least {LEAST_KEY} characters",
)
service_address = normalize_address
redis_url = _make_secret_reader(
    _REDIS_URL.fullmatch,
    "MARKETING_BUDGET_URL: the address of a Redis server is needed, like redis://HOST:6379/0",
)


@dataclass(frozen=True)
class MailServer:
    """An SMTP server. `encryption`: tls (from the start), starttls or none; without a login `user`
    and `password` are empty."""

    host: str
    port: int
    user: str
    password: Secret
    encryption: str


def mail_server(text: str) -> MailServer:
    """From smtps://USER:PASSWORD@HOST:PORT, percent-encoded; smtp:// encrypts by STARTTLS unless
    the server is on this machine. Raises SettingsError, which doesn't quote the password."""
    wrong = SettingsError(
        "MARKETING_MAIL_URL: an address like smtps://USER:PASSWORD@HOST is needed, or smtp://… "
        "for STARTTLS; write special characters of the password as %40 for @"
    )
    try:
        parts = urlsplit(text)
        host = str(parts.hostname or "")
        port = parts.port
    except ValueError:
        raise wrong from None
    if (
        parts.scheme not in ("smtp", "smtps")
        or not host
        or bool(parts.username) != bool(parts.password)
    ):
        raise wrong
    is_local = host in ("localhost", "127.0.0.1", "::1")
    encryption, usual_port = ("none", 25) if is_local else ("starttls", 587)
    if parts.scheme == "smtps":
        encryption = "tls"
        usual_port = 465
    user = unquote(parts.username or "")
    password = Secret(unquote(parts.password or ""))
    return MailServer(host, port or usual_port, user, password, encryption)


def webhook(text: str) -> str:
    """Raises SettingsError, which doesn't quote the address: who has it can post."""
    if not re.fullmatch(r"https?://\S+", text):
        raise SettingsError("MARKETING_ALERT_URL: an address like https://HOST/PATH is needed")
    return text


def windows(text: str) -> str:
    """Hours by channel, without blanks around commas and equals signs."""
    return _hours(",".join("=".join(map(str.strip, part.split("="))) for part in text.split(",")))


def size(text: str) -> int:
    """Bytes: `2GB`, `800 MB`, `1.5GiB`."""
    number, unit = re.split(r" ?(?=[MG])", memory(text))
    return int(float(number) * {"MB": 1e6, "GB": 1e9, "MiB": 2**20, "GiB": 2**30}[unit])


def read_value(name: str, read: Callable[[str], T], text: str) -> T:
    """Raises SettingsError, which names the setting."""
    try:
        return read(text.strip())
    except ValueError as error:
        raise SettingsError(f"{name}={text!r} cannot be used: {error}") from None
