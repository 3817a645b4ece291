"""How the service writes values: strings or numbers, lists or objects, pages, date forms."""

import datetime as dt
from dataclasses import dataclass
from typing import Any
from zoneinfo import ZoneInfo

from . import dates
from .variants import Variants

Params = dict[str, Any]

#: What nobody announced; must be found again in column `extra`.
SURPRISE: dict[str, Any] = {"x_surprise": "kept, ünseen", "x_nested": {"a": [1, "b"]}}


class ServiceFault(Exception):
    """The service says no: the error envelope's code and message."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


@dataclass(frozen=True)
class Shape:
    """The variants applied to single values."""

    variants: Variants
    zone: ZoneInfo

    def num(self, value: float | int | str) -> Any:
        """Numbers and numeric ids: strings in most samples."""
        if self.variants.numbers:
            return int(value) if isinstance(value, str) and value.isdigit() else value
        return str(value)

    def obj(self, value: dict[str, Any]) -> Any:
        """PHP writes an empty array for an empty object."""
        if not value and self.variants.empty_as_null:
            return None
        return [] if not value and self.variants.empty_as_list else value

    def flag(self, value: bool, words: tuple[str, str] = ("0", "1")) -> Any:
        if self.variants.booleans:
            return value
        return self.num(int(value)) if words == ("0", "1") else words[value]

    def rows(self, values: list[Any], *, nested: bool = False) -> Any:
        """A list; as an object keyed from 1 where the variant says so (`nested`: inside an entry)."""
        keyed = self.variants.number_keyed
        if not values and nested and self.variants.empty_as_null:
            return None
        if not values or not keyed or (nested and keyed != "all"):
            return values
        return {str(index): value for index, value in enumerate(values, 1)}

    def entry(self, **values: Any) -> dict[str, Any]:
        return values | SURPRISE if self.variants.extra_fields else values

    def listing(self, items: Any, served: int, total: int | None = None) -> dict[str, Any]:
        """`count` and `items`; no row at all is `[]` (row 14)."""
        found: dict[str, Any] = {"items": items if served else []}
        if self.variants.count != "missing":
            whole = served if self.variants.count == "page" or total is None else total
            whole += 1000 if self.variants.count == "wrong" else 0
            # A page past the end has count 0 in both readings (row 14).
            found = {"count": self.num(whole if served else 0), **found}
        return found

    def when(self, at: dt.datetime | None, form: str = "%m/%d/%Y %H:%M") -> Any:
        form = form if self.variants.spec_dates else self.variants.date_form
        text = dates.written(at, self.zone, form)
        return int(text) if text.isdigit() and self.variants.numbers else text

    def day(self, day: dt.date) -> str:
        return dates.written_day(day, "" if self.variants.spec_dates else self.variants.date_form)

    def time(self, at: dt.datetime) -> str:
        return dates.written_time(at, self.zone, "" if self.variants.spec_dates else self.variants.date_form)

    def stamp(self, at: dt.datetime) -> Any:
        return self.num(dates.unix(at))

    def page(self, values: list[Any], params: Params, default: int) -> list[Any]:
        """The rows of one page under the paging variants."""
        v = self.variants
        if v.ignore_limit and v.ignore_page:
            return values
        size = default if v.ignore_limit else max(1, number(params, "limit", default))
        size = min(size, v.page_cap or size)
        page = 1 if v.ignore_page else max(1, number(params, "page", 1))
        start = (page - 1) * (size - 1 if v.shifting and size > 1 else size)
        if start >= len(values) and v.past_end == "last" and values:
            start = (len(values) - 1) // size * size
        return values[start : start + size]


def number(params: Params, name: str, default: int | None = None) -> int:
    """A numeric parameter; the service's validation error otherwise."""
    text = str(params.get(name, "")).strip()
    if not text and default is not None:
        return default
    if not text.lstrip("-").isdigit():
        raise ServiceFault(1003, f"{name} must be a number")
    return int(text)


def text(params: Params, name: str, default: str | None = None) -> str:
    value = str(params.get(name, "")).strip()
    if not value and default is None:
        raise ServiceFault(1003, f"{name} is required")
    return value or default or ""


def words(params: Params, name: str, default: str = "all") -> set[str]:
    return {part.strip().lower() for part in text(params, name, default).split(",")}


def day_range(params: Params, variants: Variants, *, required: bool = False) -> tuple[dt.date, dt.date]:
    """`from` and `to`, both included; open ends where they may be left out."""
    ends, open_ends = [], 0
    for name, default in (("from", dt.date.min), ("to", dt.date.max)):
        given = text(params, name, None if required else " ").strip()
        open_ends += not given
        try:
            ends.append(dates.parse_input_day(given) if given else default)
        except ValueError:
            raise ServiceFault(1003, f"{name} is not a date") from None
    # No range was named where an end is open: nothing to find too long.
    if variants.max_range_days and not open_ends and (ends[1] - ends[0]).days + 1 > variants.max_range_days:
        raise ServiceFault(1010, f"the date range is longer than {variants.max_range_days} days")
    return ends[0], ends[1]
