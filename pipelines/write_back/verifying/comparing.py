"""Comparing what was intended for a contact with what the service shows of it, field by field. Pure.

Not here: reading it (`verify`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from marketing_api.write_result import unescaped
from pipelines.write_back.sending.finding import Found
from pipelines.write_back.sending.forms import LISTS

#: Field → what was intended, what is shown. `contact` stands for being there at all.
Drift = Mapping[str, tuple[Any, Any]]


@dataclass(frozen=True, slots=True)
class Compared:
    """`hidden`: fields that the answer does not show, so that nothing is known about them."""

    drift: Drift = field(default_factory=dict, repr=False)
    hidden: frozenset[str] = frozenset()

    @property
    def is_as_intended(self) -> bool:
        return not self.drift


def compare(expected: Mapping[str, Any], found: Sequence[Found], labels: Mapping[str, str]) -> Compared:
    """One list's contacts with the address against `{"status", "fields"}`; `labels`: field id → label, of that list.

    A sync changes every contact with the address in the list, so all of them must be as intended.
    """
    if not found:
        return Compared({"contact": ("there", "not there")})
    drift: dict[str, tuple[Any, Any]] = {}
    hidden: set[str] = set()
    for one in found:
        _compare_status(expected.get("status"), one, drift, hidden)
        _compare_fields(expected.get("fields") or {}, one, labels, drift, hidden)
    return Compared(drift, frozenset(hidden))


def merged(parts: Mapping[int, Compared]) -> Compared:
    """Of several lists. A field that drifts in one of them drifts; where others are as intended, it is said which (`LISTS`)."""
    drift: dict[str, tuple[Any, Any]] = {}
    for part in parts.values():
        drift |= part.drift
    taken = [list_id for list_id, part in parts.items() if part.is_as_intended]
    if drift and taken:
        drift[LISTS] = (list(parts), taken)
    return Compared(drift, frozenset(name for part in parts.values() for name in part.hidden))


def _compare_status(wanted: Any, one: Found, drift: dict[str, tuple[Any, Any]], hidden: set[str]) -> None:
    if wanted is None:
        return
    if one.status is None:
        hidden.add("status")
    elif one.status != wanted:
        drift["status"] = (wanted, one.status)


def _compare_fields(
    wanted: Mapping[str, Any], one: Found, labels: Mapping[str, str], drift: dict[str, tuple[Any, Any]], hidden: set[str]
) -> None:
    """What is empty may be left out, but only where other fields of the list are shown."""
    shown = _by_field(one.fields or {}, {**dict.fromkeys(wanted, ""), **labels})
    for name, value in wanted.items():
        if not shown:
            hidden.add(name)
        elif _plain(shown.get(name)) != _plain(value):
            drift[name] = (value, shown.get(name))


def _by_field(fields: Mapping[str, Any], labels: Mapping[str, str]) -> dict[str, Any]:
    """By field id, whether they are shown under their ids or their labels (api-observed row 19)."""
    ids = {_folded(label): field_id for field_id, label in labels.items() if label} | {field_id: field_id for field_id in labels}
    found = {}
    for name, value in fields.items():
        if (field_id := ids.get(str(name)) or ids.get(_folded(str(name)))) is not None:
            found[field_id] = value["value"] if isinstance(value, Mapping) and "value" in value else value
    return found


def _folded(label: str) -> str:
    return re.sub(r"[\s_]+", "", label).casefold()


def _plain(value: Any) -> str:
    """As text, blanks and entities made alike; nothing and empty are the same."""
    if value is None or value in ([], {}):
        return ""
    if isinstance(value, bool):
        return "1" if value else "0"
    return " ".join(unescaped(str(value)).split())
