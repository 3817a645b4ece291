"""The field types that absorb the service's quirks: nothing beyond this package knows how untidy the values are.

Belongs here: turning one raw value into one Python value. Not here: which fields a record has (`records/AREA.py`).
Zone-dependent types read the account's time zone from pydantic's validation context (`{"zone": ZoneInfo}`).
"""

from __future__ import annotations

import datetime as dt
import hashlib
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from decimal import Decimal
from typing import Annotated, Any
from zoneinfo import ZoneInfo

from pydantic import BaseModel, BeforeValidator, ConfigDict, ValidationInfo


class Record(BaseModel):
    """One row's worth of the service's data. Fields it does not know are kept in `extra`, never dropped."""

    model_config = ConfigDict(extra="allow", frozen=True, populate_by_name=True, protected_namespaces=())

    @property
    def extra(self) -> dict[str, Any] | None:
        """The fields that the declaration does not name, as they came; None when there are none."""
        return self.model_extra or None


#: How the service says "nothing here" (api-observed row 21 and the coupon's `N/A`).
_NOTHING = frozenset({"", "-", "n/a", "null", "none"})


def is_nothing(value: Any) -> bool:
    """True for None, an empty collection and the words the service uses for a missing value."""
    if value is None or value == [] or value == {}:
        return True
    return isinstance(value, str) and value.strip().lower() in _NOTHING


def _optional(read: Callable[[Any], Any]) -> BeforeValidator:
    return BeforeValidator(lambda value: None if is_nothing(value) else read(value))


def read_int(value: Any) -> int:
    """`"12"`, `12`, `12.0`, `"1,204"` → 12, 12, 12, 1204."""
    if type(value) is int:
        return value
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, float):
        if value.is_integer():
            return int(value)
        raise ValueError(f"not a whole number: {value!r}")
    return int(str(value).strip().replace(",", ""))


def read_decimal(value: Any) -> Decimal:
    return Decimal(str(value).strip().replace(",", ""))


_TRUE = frozenset({"1", "yes", "true", "y", "on"})
_FALSE = frozenset({"0", "no", "false", "n", "off"})


def read_bool(value: Any) -> bool:
    """`0/1`, `Yes/No`, `true/false`, as text, number or boolean."""
    word = str(value).strip().lower()
    if word in _TRUE:
        return True
    if word in _FALSE:
        return False
    raise ValueError(f"neither yes nor no: {value!r}")


def read_text(value: Any) -> str | None:
    """Text as it came; numbers become text, an empty collection stands for nothing."""
    if value is None or isinstance(value, str):
        return value
    if value == [] or value == {}:
        return None
    if isinstance(value, list | dict):
        return json.dumps(value, ensure_ascii=False)
    return str(value)


_DATE_TIME = re.compile(
    r"(?:(?P<y>\d{4})-(?P<m>\d{1,2})-(?P<d>\d{1,2})"
    r"|(?P<m2>\d{1,2})/(?P<d2>\d{1,2})/(?P<y2>\d{4})"
    r"|(?P<d3>\d{1,2})-(?P<m3>\d{1,2})-(?P<y3>\d{4}))"
    r"(?:[ T]+(?P<H>\d{1,2}):(?P<M>\d{2})(?::(?P<S>\d{2})(?:\.\d+)?)?\s*(?P<half>[AaPp][Mm])?\s*(?P<offset>Z|[+-]\d{2}:?\d{2})?)?"
)
_UNIX = re.compile(r"\d{9,11}(\.\d+)?")


def read_moment(value: Any, zone: dt.tzinfo) -> dt.datetime:
    """Every date-time form of api-observed row 21 → an aware UTC date-time; local forms are in `zone`.

    `14:52 PM` (24 h and PM at once) is 14:52. Unix seconds may be a number or text.
    """
    if isinstance(value, int | float) and not isinstance(value, bool):
        return dt.datetime.fromtimestamp(value, dt.UTC)
    text = str(value).strip()
    if _UNIX.fullmatch(text):
        return dt.datetime.fromtimestamp(float(text), dt.UTC)
    match = _DATE_TIME.fullmatch(text)
    if match is None:
        raise ValueError(f"not a date or time: {text!r}")
    part = match.groupdict()
    year, month, day = (int(part[key] or part[key + "2"] or part[key + "3"]) for key in "ymd")
    hour = _hour_of_day(int(part["H"] or 0), part["half"])
    moment = dt.datetime(year, month, day, hour, int(part["M"] or 0), int(part["S"] or 0), tzinfo=_offset(part["offset"]) or zone)
    return moment.astimezone(dt.UTC)


def _hour_of_day(hour: int, half: str | None) -> int:
    if half is None or hour > 12:
        return hour
    return hour % 12 + (12 if half.lower() == "pm" else 0)


def _offset(text: str | None) -> dt.tzinfo | None:
    if not text:
        return None
    if text == "Z":
        return dt.UTC
    sign = -1 if text[0] == "-" else 1
    return dt.timezone(sign * dt.timedelta(hours=int(text[1:3]), minutes=int(text[-2:])))


def zone_of(info: ValidationInfo) -> dt.tzinfo:
    """The account's time zone from the validation context; UTC last (api-observed row 20)."""
    return (info.context or {}).get("zone") or ZoneInfo("UTC")


def _moment(value: Any, info: ValidationInfo) -> dt.datetime | None:
    return None if is_nothing(value) or value in (0, "0") else read_moment(value, zone_of(info))


def _local_date(value: Any, info: ValidationInfo) -> dt.date | None:
    if type(value) is dt.date:
        return value
    if (moment := _moment(value, info)) is None:
        return None
    return moment.astimezone(zone_of(info)).date()


ApiInt = Annotated[int, BeforeValidator(read_int)]
MaybeInt = Annotated[int | None, _optional(read_int)]
MaybeFloat = Annotated[float | None, _optional(lambda value: float(read_decimal(value)))]
MaybeDecimal = Annotated[Decimal | None, _optional(read_decimal)]
MaybeBool = Annotated[bool | None, _optional(read_bool)]
ApiText = Annotated[str, BeforeValidator(read_text)]
MaybeText = Annotated[str | None, BeforeValidator(read_text)]
AccountTime = Annotated[dt.datetime | None, BeforeValidator(_moment)]
AccountDate = Annotated[dt.date | None, BeforeValidator(_local_date)]
#: Any JSON value, kept as it came; an empty collection stands for nothing.
Json = Annotated[dict[str, Any] | list[Any] | None, BeforeValidator(lambda value: None if is_nothing(value) else value)]


def entries(items: Any) -> Iterator[Any]:
    """The entries of a collection in any of its shapes: list, object keyed by number, `[]` or null for empty (row 16)."""
    if items is None:
        return
    if isinstance(items, dict):
        yield from items.values()
    elif isinstance(items, list):
        yield from items
    else:
        raise ValueError(f"not a collection: {type(items).__name__}")


def mapping(value: Any) -> dict[str, Any]:
    """An object; `[]` and null stand for an empty one, a list for an object keyed by position (row 16)."""
    if isinstance(value, dict):
        return value
    if isinstance(value, list):
        return {str(index): item for index, item in enumerate(value)}
    if value is None:
        return {}
    raise ValueError(f"not an object: {type(value).__name__}")


def keyed(raws: Iterable[dict[str, Any]], name: str, identity: tuple[str, ...]) -> Iterator[dict[str, Any]]:
    """Give entries without an id a stable key: hash of what identifies them plus an occurrence number.

    True duplicates get occurrence 0, 1, … in answer order and so survive; reading the same answer again gives the same keys.
    """
    seen: Counter[str] = Counter()
    for raw in raws:
        content = json.dumps([raw.get(part) for part in identity], sort_keys=True, ensure_ascii=False, default=str)
        digest = hashlib.blake2b(content.encode(), digest_size=12).hexdigest()
        yield {**raw, name: f"{digest}-{seen[digest]}"}
        seen[digest] += 1
