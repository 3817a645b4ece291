"""What the service may mean, how it may be written, and whether a value is what a text says: an oracle for
the readers.

Everything here works the other way round than the readers: from a meaning to its spellings, from a value back
to the text. Near misses of each form have to be refused; of any other text a reader may take only what the
text says. Not here: the tests (`test_never_guessed`).
"""

import datetime as dt
import json
import random
import re
import string
import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from email.headerregistry import Address
from fractions import Fraction
from itertools import product
from typing import Any
from zoneinfo import ZoneInfo

import phpserialize
from pydantic import ValidationError

from marketing_api.records import values
from marketing_api.records.contacts import Contact, read_contacts
from marketing_api.records.reputation import read_rating

ZONE = ZoneInfo("America/New_York")
Rng = random.Random
NOTHING = ("", " ", "-", "n/a", "N/A", "null", "NULL", "none", "None", " - ")
#: What has been taken for something else somewhere: digits of other scripts, blanks that are not seen, signs
#: that look alike.
_ODD = (
    "0123456789 "
    ",.;:-+_/()%@<>\"'eExXTZAPMapm\t\n\u00a0\u200b\u2212\u2013\uff11\u0662\u00b2\u00bd\u212a\u017f\x00"
)


@dataclass(frozen=True)
class Reader:
    """`spell`: a text and its meaning; `twist`: one without meaning; `says`: whether a text means a value."""

    name: str
    read: Callable[[str], Any]
    spell: Callable[[Rng], tuple[str, Any]]
    twist: Callable[[Rng], str]
    says: Callable[[str, Any], bool]


def check(reader: Reader, count: int, seed: int) -> Iterator[str]:
    """Faults over `count` texts: two fifths spelled, one fifth near misses, two fifths changed or random."""
    rng = random.Random(f"{reader.name} {seed}")
    for number in range(count):
        kind = number % 5
        text, meaning = (reader.twist(rng), None) if kind == 2 else reader.spell(rng)
        if kind > 2:
            text = changed(rng, text) if rng.random() < 0.8 else random_text(rng)
        if (
            fault := verdict(
                reader, text, must_be=meaning, kind=("same", "same", "refused", "any", "any")[kind]
            )
        ) is not None:
            yield f"{reader.name}: {fault}: {text[:200]!r}"


def verdict(reader: Reader, text: str, must_be: Any = None, kind: str = "any") -> str | None:
    """What is wrong with how the text is read; None when nothing is."""
    try:
        value = reader.read(text)
    except ValueError as problem:
        if kind == "same":
            return f"refused, though it means {must_be!r}"
        return "the reason repeats the text" if len(text) > 5 and text in str(problem) else None
    except Exception as problem:  # nothing else may come out of a reader
        return f"{type(problem).__name__} is no ValueError"
    if kind == "refused":
        return f"taken for {value!r}, though it is a near miss"
    if kind == "same" and value != must_be:
        return f"read as {value!r}, though it means {must_be!r}"
    return None if reader.says(text, value) else f"read as {value!r}, which it does not say"


def changed(rng: Rng, text: str) -> str:
    """The text with one to three letters changed, or a part of it doubled, dropped or moved."""
    for _ in range(rng.randint(1, 3)):
        at, letter = rng.randint(0, len(text)), rng.choice(_ODD)
        to = rng.randint(at, len(text))
        text = rng.choice(
            [
                text[:at] + letter + text[at:],
                text[:at] + letter + text[at + 1 :],
                text[:at] + text[at + 1 :],
                text[:to] + text[at:],
                text[at:] + text[:at],
            ]
        )
    return text


def random_text(rng: Rng) -> str:
    alphabet = rng.choice([_ODD, string.digits + ",.-", string.printable, "clicks@.b1 ()"])
    return "".join(rng.choice(alphabet) for _ in range(rng.randint(0, 30)))


def blanks(rng: Rng, text: str) -> str:
    return rng.choice(["", "", "", " ", "  "]) + text + rng.choice(["", "", "", " ", "\n"])


# --- numbers


def number_in(text: str) -> Fraction | None:
    """The number that a text is in the service's country, digit by digit; None when it is none."""
    text = text.strip()
    negative, text = text[:1] == "-", text[1:] if text[:1] in ("+", "-") else text
    whole, point, fraction = text.partition(".")
    groups = whole.split(",")
    if len(groups) > 1 and (
        not 1 <= len(groups[0]) <= 3 or groups[0][0] == "0" or any(len(group) != 3 for group in groups[1:])
    ):
        return None
    digits = "".join(groups)
    if (point and not fraction) or not digits + fraction or not set(digits + fraction) <= set("0123456789"):
        return None
    value = Fraction(
        sum(int(digit) * 10**place for place, digit in enumerate(reversed(digits + fraction))),
        10 ** len(fraction),
    )
    return -value if negative else value


def _items(text: str) -> list[str]:
    """Of a table whose items are at least two blanks apart."""
    return re.split(r"\s{2,}", text.strip())


def _grouped(rng: Rng, number: int) -> str:
    return rng.choice([f"{number}", f"{number:,}"])


def _any_int(rng: Rng) -> int:
    return rng.choice(
        [0, 1, rng.randint(-999, 9999), rng.randint(0, 10**9), rng.randint(-(2**63), 2**63 - 1)]
    )


def _spell_int(rng: Rng) -> tuple[str, int]:
    number = _any_int(rng)
    text = _grouped(rng, number) + rng.choice(["", "", "", ".0", ".00", ".0000"])
    return blanks(
        rng,
        text
        if number < 0
        else rng.choice(["", "", "+", "00" if text.replace(".", "").isdigit() else ""]) + text,
    ), number


def _twisted_number(rng: Rng) -> str:
    a, b = rng.randint(1, 999), rng.randint(0, 999)
    near = [
        *_items(f"""
        {a},{b % 10}  {a},{b % 100:02}  {a},{b:03}{a % 10}  0,{b:03}  {a},{b:03},{b % 100:02}
        {a * 10 + 1000},{b:03}
        {a}_{b:03}  {a}e{b % 9}  {a}E+{b % 9}  0x{a:x}  0b{a:b}  {a} {b:03}  {a}'{b:03}  {a}.  --{a}  {a}-
        {a}.{b}.{a}  ,{b:03}  {a},  ${a}  {a}%  {a} pcs  ({a})  \u2212{a}  {a}\u00bd  {a}\u00b2  {a}k
        {str(a).translate(_WIDE_DIGITS)}  {str(a).translate(_ARABIC_DIGITS)}  inf  nan  -Infinity  true
        {a}.{b:03}e400  {a},{b:03}.{a:03},{b:03}  {b:03}.{a},{b:03}  +  [1]  {{"a": 1}}
    """),
        "9" * rng.randint(41, 6000),
        "." * rng.randint(1, 3),
    ]
    return rng.choice(near)


_WIDE_DIGITS = {ord(digit): 0xFF10 + int(digit) for digit in string.digits}
_ARABIC_DIGITS = {ord(digit): 0x0660 + int(digit) for digit in string.digits}


def _twist_int(rng: Rng) -> str:
    own = _items(f"""
        {rng.randint(1, 999)}.000  {rng.randint(0, 99)}.5  0.01  {2**63}  {-(2**63) - 1}  1.0E+25
    """)
    return rng.choice(own) if rng.random() < 0.2 else _twisted_number(rng)


def _says_int(text: str, value: Any) -> bool:
    return type(value) is int and number_in(text) == value and not text.strip().endswith(".000")


def _spell_decimal(rng: Rng) -> tuple[str, Fraction]:
    whole, places = abs(_any_int(rng)), rng.randint(0, 6)
    fraction = rng.randrange(10**places)
    sign = rng.choice(["", "", "-"])
    value = Fraction(whole * 10**places + fraction, 10**places)
    return blanks(
        rng, sign + _grouped(rng, whole) + (f".{fraction:0{places}}" if places else "")
    ), -value if sign else value


def _spell_share(rng: Rng) -> tuple[str, tuple[int, float | None]]:
    count, percent = abs(_any_int(rng)), rng.randint(0, 99_999)
    written = rng.choice([str(percent // 100), f"{percent / 100:.2f}", f"{percent / 100:,.1f}"])
    text = f"{_grouped(rng, count)}{rng.choice(['', ' '])}({written}{rng.choice(['', ' '])}%)"
    return (
        (blanks(rng, text), (count, float(written.replace(",", ""))))
        if rng.random() < 0.8
        else (_grouped(rng, count), (count, None))
    )


def _twist_share(rng: Rng) -> str:
    a, b = rng.randint(1, 99), rng.randint(1, 99)
    near = _items(f"""
        {a} %  {a}%  {a} ({b})  {a}({b})  {a} ({b},{a % 10}%)  {a} ({b}%  {a} {b}%)  {a} ({b}%%)  ({b}%)
    """)
    near += _items(f"""
        {a} ({b}%) ({a}%)  {a}.5 ({b}%)  {a}e1 ({b}%)  {a} of {b}  {a}/{b}  {a} ({b}% )x  {a} (N/A)
        {a} [{b}%]
    """)
    return rng.choice([*near, f"{_twisted_number(rng)} ({b}%)", f"{a} ({_twisted_number(rng)}%)"])


def _says_share(text: str, value: Any) -> bool:
    count, percent = value
    if count is None:
        return percent is None and text.strip().lower() in _NOTHING_WORDS
    before, bracket, after = text.strip().partition("(")
    if not bracket:
        return percent is None and _says_int(before, count)
    stated = number_in(after[:-1].rstrip()[:-1])
    return (
        after[-1] == ")"
        and after[:-1].rstrip()[-1] == "%"
        and _says_int(before, count)
        and stated is not None
        and float(stated) == percent
    )


_NOTHING_WORDS = {word.strip().lower() for word in NOTHING}

# --- yes and no, words, texts

_YES, _NO = ("1", "yes", "Yes", "true", "TRUE", "y", "on"), ("0", "no", "No", "false", "False", "n", "off")


def _spell_bool(rng: Rng) -> tuple[str, bool]:
    truth = rng.random() < 0.5
    return blanks(rng, rng.choice(_YES if truth else _NO)), truth


def _twist_bool(rng: Rng) -> str:
    return rng.choice(
        [
            *_items("""
            2  -1  01  00  yess  oui  t  f  enabled  1.0  yes, no  ye\u017f  \uff11  maybe  ok  -
        """),
            "",
        ]
    )


def _spell_word(rng: Rng) -> tuple[str, str]:
    word = rng.choice(
        _items("""
            active  on hold  sms  news  geprüft  opt-out  disactive  b2b  Facebook  Google+  X (Twitter)
        """)
    )
    return blanks(rng, rng.choice([word, word.upper().replace("Ü", "ü"), word.capitalize()])), word.lower()


def _twist_word(rng: Rng) -> str:
    return rng.choice(
        [
            *NOTHING,
            "12",
            "-3",
            "1.5",
            "(5)",
            "?",
            "\uff11",
            "\x00a\x00",
            "a\u200bb",
            "a\nb",
            "é" * 101,
            "x" * rng.randint(101, 5000),
        ]
    )


def _spell_network(rng: Rng) -> tuple[str, str]:
    return rng.choice([_spell_word, lambda rng: ("500px ", "500px")])(rng)


def _spell_status(rng: Rng) -> tuple[str, tuple[str | None, int | None]]:
    word, code = rng.choice(
        [
            ("unconfirmed", 0),
            ("active", 1),
            ("unsubscribed", 2),
            ("bounced", 3),
            ("disactive", None),
            (None, rng.randint(4, 99)),
        ]
    )
    return blanks(
        rng,
        rng.choice([str(code), str(code), word.capitalize() if word else str(code)])
        if code is not None
        else str(word),
    ), (
        word,
        code,
    )


def _says_status(text: str, value: Any) -> bool:
    word, code = value
    known = {"unconfirmed": 0, "active": 1, "unsubscribed": 2, "bounced": 3}
    told = text.strip().lower()
    if code is None:
        return (
            told in _NOTHING_WORDS
            if word is None
            else word == told and told not in known and told[0].isalpha()
        )
    return (_says_int(text, code) or known.get(told) == code) and (word is None or known[word] == code)


def _status(text: str) -> tuple[str | None, int | None]:
    ((_, raw),) = read_contacts([{"id": 1, "status": text}], {"listid": "5"})
    try:
        contact = Contact.model_validate(raw)
    except ValidationError as problem:
        raise ValueError(problem.errors()[0]["msg"]) from None
    return contact.status, contact.status_code


# --- moments

_DAYS, _TIMES = ("%Y-%m-%d", "%m/%d/%Y", "%d-%m-%Y"), ("%H:%M", "%H:%M:%S", "%H:%M:%S.%f")
_TWELVE = tuple(time.replace("%H", "%I") for time in _TIMES)
_HALVES = tuple(f"{clock}{blank}%p" for clock, blank in product((*_TIMES, *_TWELVE), ("", " ")))
_CLOCKS = tuple(f"{clock}{away}" for clock, away in product((*_TIMES, *_HALVES), ("", "%z", " %z")))
_FORMATS = tuple(f"{day} {clock}" for day, clock in product(_DAYS, _CLOCKS))


def _spell_moment(rng: Rng) -> tuple[str, dt.datetime | None]:
    if rng.random() < 0.1:
        zero = rng.choice(["0000-00-00", "00/00/0000"]) + rng.choice(["", " 00:00", " 00:00:00"])
        return blanks(rng, rng.choice([*NOTHING, "0", zero])), None
    at = dt.datetime.fromtimestamp(rng.randint(100_000_000, 4_000_000_000), dt.UTC)
    kind = rng.random()
    if kind < 0.15:
        return blanks(rng, str(int(at.timestamp()))), at
    local = at.astimezone(ZONE).replace(fold=0)
    if kind < 0.3:
        return blanks(rng, local.strftime(rng.choice(_DAYS))), dt.datetime.combine(
            local.date(), dt.time(), ZONE
        ).astimezone(dt.UTC)
    clock = rng.choice(_CLOCKS)
    if not re.search("%S", clock):
        local = local.replace(second=0)
    if "%f" in clock:
        local = local.replace(microsecond=rng.randrange(10**6))
    if "%z" in clock:
        local = local.astimezone(dt.timezone(dt.timedelta(minutes=rng.choice([-720, -210, 0, 330, 840]))))
    text = local.strftime(f"{rng.choice(_DAYS)}{rng.choice([' ', '  ', 'T'])}{clock}")
    return blanks(rng, text), local.astimezone(dt.UTC)


def _twist_moment(rng: Rng) -> str:
    d, m, y, h, i = (
        rng.randint(13, 28),
        rng.randint(1, 12),
        rng.randint(1990, 2030),
        rng.randint(1, 11),
        rng.randint(10, 59),
    )
    day, hour = f"{m:02}/{d:02}/{y}", f"{h:02}:{i}"
    return rng.choice(
        [
            *_items(f"""
            {d}/{m:02}/{y} {hour}  {m:02}-{d}-{y}  {m}/{d}/{y % 100:02} {hour}  {y}/{m:02}/{d}  {d}.{m}.{y}
            {y}{m:02}{d}
            {day} {h + 12}:{i} AM  {day} 00:{i} PM  {day} 24:00  {day} 25:{i} PM  {day} {h}:60
            {day} {hour}:61  {day} {h}:5
            {day} {hour} extra  {day} {hour} EST  {day} {hour}+15:00  {day} {hour}+02:60  {day} {hour}+2
            {day} {hour}PMPM
            {day}TT{hour}  {day}{hour}  {day} {hour} {hour}  02/30/{y}  {y}-13-01  {y}-00-10
            0000-00-00 10:30  {m}/{y}
            0000-00-00x  00/00/0000 soon  {y}  {y}.5  {rng.randint(1, 99_999_999)}
            {rng.randint(4_133_980_800, 10**11)}
            -{rng.randint(10**8, 10**9)}  {rng.randint(10**12, 2 * 10**12)}  1_383_582_780  1383582780e0
            {y - 2000:02}:{i}  now
            {day.translate(_WIDE_DIGITS)}  {y}-W{m:02}-1  {y}-{m:02}-{d}T{hour}z  00
            +1383582780  1,383,582,780  true
        """),
            "1383582780".translate(_ARABIC_DIGITS),
            "9" * 5000,
        ]
    )


def _says_moment(text: str, at: Any) -> bool:
    told = text.strip()
    if at is None:
        return (
            told.lower() in _NOTHING_WORDS
            or told == "0"
            or (set(told) <= set("0-/: .T") and told[:10] in ("0000-00-00", "00/00/0000", "00-00-0000"))
        )
    if not told.isascii() or "_" in told:
        return False
    if re.fullmatch(r"[0-9.]+", told):
        moved = Fraction(told) - Fraction(
            int((at - dt.datetime(1970, 1, 1, tzinfo=dt.UTC)) / dt.timedelta(microseconds=1)), 10**6
        )
        return 100_000_000 <= Fraction(told) < 4_133_980_800 and abs(moved) < Fraction(1, 10**6)
    if told.count(" ") + told.count("T") == 0:
        return any(_parsed(told, day) is not None and _aware(_parsed(told, day)) == at for day in _DAYS)
    told = re.sub(
        r"(\.\d{6})\d+",
        r"\1",
        re.sub(" +", " ", told.replace("T", " ", 1) if told[8:11].count("T") else told),
    )
    readings = [(form, local) for form in _forms(told) if (local := _parsed(told, form)) is not None]
    readings = [
        local
        for form, local in readings
        if not ("%H" in form and "%p" in form) or ("a" in told.lower()) == (local.hour < 12)
    ]
    return any(_aware(local) == at for local in readings)


def _forms(text: str) -> Iterator[str]:
    """The formats that have what the text has: trying all takes long."""
    day = "%m/%d/%Y" if "/" in text else "%Y-%m-%d" if re.match(r"\d{4}-", text) else "%d-%m-%Y"
    for form in (form for form in _FORMATS if form.startswith(day)):
        if (
            (".%f" in form) == ("." in text)
            and ("%p" in form) == ("m" in text.lower())
            and ("%z" in form) == bool(re.search("[+Z]|:.*-", text))
        ):
            yield form


def _parsed(text: str, form: str) -> dt.datetime | None:
    try:
        return dt.datetime.strptime(text, form)
    except ValueError:
        return None


def _aware(local: dt.datetime | None) -> dt.datetime | None:
    return (
        None if local is None else (local if local.tzinfo else local.replace(tzinfo=ZONE)).astimezone(dt.UTC)
    )


# --- clickers

_LOCALS = _items("""
    ann  first.last  o'neil+tag  a-b  x_y  50%off  MiXed  münchen  josé  007  3-clicks  "ann lee"  "a@b, c"
    a/b=c
""")
_DOMAINS = _items("""
    example.com  b.example  c-d.example  x--y.co.uk  exämple.org  a1.example  x.xn--p1ai  3.example  例え.テスト
""")


def _address(rng: Rng) -> str:
    return f"{rng.choice(_LOCALS)}@{rng.choice(_DOMAINS)}"


def _spell_clicker(rng: Rng) -> tuple[str, tuple[str, int]]:
    email, count = _address(rng), rng.choice([0, 1, 2, rng.randint(0, 10**7)])
    word = rng.choice([" click", " clicks", "clicks", " Clicks", " click(s)"])
    told = _grouped(rng, count)
    either = rng.choice([told, told + word, f"clicks: {told}"])
    forms = _items(f"""
        {email}({either})  {email} ({either})  {email} [{either}]  {email}: {either}  {email}, {either}
        {email},{either}
        {email} - {either}  {email} \u2013 {either}  {email} {either}  {email}; {either}  {email}\t{told}
        {email}={told}
        Ann Lee <{email}> ({either})  <{email}>: {either}  mailto:{email} ({either})  {email} x{told}
        {email} | {either}
        {told} clicks {email}  {told} clicks: {email}  ({told} clicks) {email}  {told} click by {email}
        B 2 <{email}> ({either})
    """)
    if rng.random() < 0.2:
        return blanks(
            rng,
            rng.choice([email, f"<{email}>", f"Ann Lee <{email}>", f"mailto:{email}", f"<mailto:{email}>"]),
        ), (email, 1)
    return blanks(rng, rng.choice(forms)), (email, count)


def _twist_clicker(rng: Rng) -> str:
    email, other, n = f"{rng.choice(_LOCALS)}@{rng.choice(_DOMAINS[:5])}", _address(rng), rng.randint(2, 99)
    return rng.choice(
        [
            *_items(f"""
            {email}-{n}  {email} -{n}  {email}{n}  {email}.{n}  {email}/{n}  {email}#{n}  {email}- {n}
            {email}{n} clicks
            {n} {email}  ({n}) {email}  {n}: {email}  {n}@{email}@  Ann {n} <{email}>  {n} <{email}>
            clicks <{email}>
            {email} ({n}) ({n})  {email} ({n}  {email} {n})  {email} ({n}]  {email} (-{n})  {email} ({n}.5)
            {email} ({n},5)
            {email} (Ann)  {email} ({n} opens)  {email} ({n}e2)  {email} (0x{n})  {email} ({n}_0)
            {email} clicks  {email}:
            {email}, {other}  {email} ({n}), {other} ({n})  {n} clicks {email} {n}
            {n} clicks <{email}> ({n})  Ann <{email} ({n})
            a***@b.example ({n})  ...son@b.example ({n})  a\u2026@b.example ({n})  a b@b.example.{n}
            nobody ({n})  @b.example ({n})
            a@b ({n})  a@-b.example ({n})  a@b-.example ({n})  a@b..example ({n})  a@b.example. ({n})
            a@b.e ({n})  a@.example {n}
            {email} ({str(n).translate(_WIDE_DIGITS)})  a\u200b@b.example ({n})  {"a" * 65}@b.example
            {email} ({"9" * 30})
            '{email}'  {email}\u200b  {email} ({n} of {n})  a@{"b." * 130}example  odd(name)@b.example ({n})
            {email} ({n} clicks, {n})
        """),
            "x" * 2000 + email,
        ]
    )


def _says_clicker(text: str, value: Any) -> bool:
    email, count = value
    if text.count("@") != 1 + (email.count("@") - 1) or text.count(email) != 1 or not _is_address(email):
        return False
    before, after = text.strip().split(email)
    bracket = before.rstrip(string.whitespace).lower().removesuffix("mailto:").rstrip().endswith("<")
    if bracket != after.lstrip("\u00a0 \t\n").startswith(">") or (
        before and before[-1] not in " \t\n\x0b\x0c\r\u00a0<:)|=,;s-\u2013\u2014y\x1c\x1d\x1e\x1f"
    ):
        return False
    name, _, _ = before.partition("<") if bracket else ("", "", "")
    rest = (
        (before.removeprefix(name) if "click" not in name.lower() else before).lower().replace("mailto:", "")
        + "@"
        + after.lower()
    )
    digits = re.findall(r"[0-9][0-9,]*", rest)
    words = set(re.findall(r"[^\W\d_]+", rest))
    if not words <= {"click", "clicks", "s", "x", "by", "from"} or re.search(
        r"[^\x00-\x7f\u00a0\u2013\u2014\u00d7]|[_+.*/#%&!?$'\"^~`{}\\]", rest
    ):
        return False
    if not digits:
        return (
            count == 1 and not words and not any(map(str.isdigit, name)) and not set(rest) & set("()[],;|=:-")
        )
    first = rest.partition("@")[0]
    is_glued = (bool(after) and after[0].isalnum()) or (after[:1] == "-")
    return (
        len(digits) == 1
        and number_in(digits[0]) == count
        and not is_glued
        and (not any(map(str.isdigit, first)) or "click" in first)
    )


def _is_address(email: str) -> bool:
    local, _, domain = email.rpartition("@")
    if (
        len(email) > 254
        or len(local) > 64
        or any(unicodedata.category(letter)[0] in "ZC" for letter in email.replace(" ", ""))
    ):
        return False
    try:
        labels = domain.encode("idna").decode().split(".")
        Address(
            addr_spec=f"{re.sub(r'[.]+(?=[.]|$)', '', local) if local[0] != chr(34) else local}@{domain}".encode(
                "ascii", "ignore"
            )
            .decode()
            .replace("@.", "@a.")
            if email.isascii()
            else "a@b.example"
        )
    except Exception:
        return False
    return (
        len(labels) > 1
        and all(map(_is_label, labels))
        and (labels[-1].isalpha() or labels[-1].lower().startswith("xn--"))
    )


def _is_label(label: str) -> bool:
    return (
        0 < len(label) < 64
        and set(label.lower()) <= set(string.ascii_lowercase + string.digits + "-")
        and label[0] != "-" != label[-1]
    )


# --- ratings


def _spell_rating(rng: Rng) -> tuple[str, float]:
    stars = rng.choice([rng.randint(0, 5), round(rng.uniform(0, 5), 1)])
    around = rng.choice([stars, {"value": stars, "text": "fine"}, {"a": {"stars": str(stars)}}, [stars]])
    forms = [lambda: json.dumps(around), lambda: phpserialize.dumps(around).decode(), lambda: f" {stars} "]
    return rng.choice(forms)(), float(stars)


def _twist_rating(rng: Rng) -> str:
    n = rng.randint(1, 5)
    near = [
        *_items(f"""
        i:{n}_0;  d:{n}_0.5;  i: {n};  {n}/5  {n},5  [{n}, 5]  {n} stars  i:{n}  {{"a": {n}  d:INF;  b:1;
    """),
        "[" * 9000,
    ]
    return rng.choice(
        [*near, f"a:{'9' * 12}:{{i:0;i:{n};i:1;i:{n};}}", "\uff15", "true", "NaN", "1" * 400, "N;", f"0x{n}"]
    )


def _rating(text: str) -> float:
    if (rating := read_rating(text)) is None:
        raise ValueError("no rating")
    return rating


def _says_rating(text: str, value: Any) -> bool:
    """The number stands in the text as it is."""
    return value in {float(found) for found in re.findall(r"-?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?", text)}


READERS = {
    reader.name: reader
    for reader in (
        Reader("int", values.read_int, _spell_int, _twist_int, _says_int),
        Reader(
            "decimal",
            values.read_decimal,
            _spell_decimal,
            _twisted_number,
            lambda text, value: number_in(text) == Fraction(value),
        ),
        Reader("share", values.read_share, _spell_share, _twist_share, _says_share),
        Reader(
            "bool",
            values.read_bool,
            _spell_bool,
            _twist_bool,
            lambda text, value: text.strip().lower() in (_YES if value else _NO),
        ),
        Reader(
            "word",
            values.read_word,
            _spell_word,
            _twist_word,
            lambda text, value: value == text.strip().lower() and value[0].isalpha(),
        ),
        Reader(
            "network",
            values.read_network,
            _spell_network,
            _twist_word,
            lambda text, value: value == text.strip().lower(),
        ),
        Reader(
            "status",
            _status,
            _spell_status,
            lambda rng: rng.choice(["1.5", "1,5", "0x1", "1e0", "?", "\uff11", "'1'", "+", "--1", "1_0"]),
            _says_status,
        ),
        Reader(
            "moment", lambda text: values.read_moment(text, ZONE), _spell_moment, _twist_moment, _says_moment
        ),
        Reader("clicker", values.read_clicker, _spell_clicker, _twist_clicker, _says_clicker),
        Reader("rating", _rating, _spell_rating, _twist_rating, _says_rating),
    )
}
