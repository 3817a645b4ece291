"""Segments as code: `activations.toml` in the working folder names queries and what to do with the people in their results.

Belongs here: what an activation is, and reading the file. Not here: running one (`activating`).
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pipelines.options import VERIFY
from pipelines.settings import SettingsError

FILE = "activations.toml"

_TYPES: Mapping[str, type] = {
    "query": str,
    "tag": str,
    "untag_when_gone": bool,
    "list": str,
    "account": str,
    "enabled": bool,
    "verify": str,
}


@dataclass(frozen=True, slots=True)
class Activation:
    """One segment: who is in the result of `query` gets `tag`, or is put into `list` (an id or a name).

    `untag_when_gone`: who is no longer in it loses the tag. Columns of the query beside `email` or `contact_id` are the status and
    custom fields of the list. `account` None: the only one there is.
    """

    name: str
    query: str
    tag: str | None = None
    untag_when_gone: bool = False
    list: str | None = None
    account: str | None = None
    enabled: bool = True
    verify: str = "sample"


def read_activations(folder: Path) -> dict[str, Activation]:
    """Those of `folder`/activations.toml by name, in its order; none without the file. Raises SettingsError."""
    path = folder / FILE
    if not path.exists():
        return {}
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as problem:
        raise SettingsError(f"{FILE} cannot be read: {problem}") from None
    tables = content.pop("activations", None)
    if content:
        raise SettingsError(f"{FILE}: {next(iter(content))} is not known; it has tables [activations.NAME]")
    if not isinstance(tables, dict) or not tables:
        raise SettingsError(f"{FILE} names no activation; write [activations.NAME] with query and tag or list")
    return {name: _activation(name, table) for name, table in tables.items()}


def chosen(activations: Mapping[str, Activation], names: Sequence[str]) -> list[Activation]:
    """Those named, whether enabled or not; all enabled ones when none is named. Raises SettingsError."""
    if unknown := [name for name in names if name not in activations]:
        there = f"there are {', '.join(activations)}" if activations else f"there is no {FILE} here"
        raise SettingsError(f"no activation is named {', '.join(unknown)}; {there}")
    return [activations[name] for name in dict.fromkeys(names)] or [each for each in activations.values() if each.enabled]


def _activation(name: str, table: Any) -> Activation:
    where = f"{FILE}, [activations.{name}]"
    if not re.fullmatch(r"[A-Za-z0-9_-]{1,64}", name):
        raise SettingsError(f"{where}: an activation's name has letters, digits, - and _ only")
    if not isinstance(table, dict):
        raise SettingsError(f"{where}: a table with query and tag or list is needed")
    for key, value in table.items():
        _check_value(where, key, value)
    if not table.get("query", "").strip():
        raise SettingsError(f"{where}: query is missing; write the SELECT whose rows are the people")
    if bool(table.get("tag")) == bool(table.get("list")):
        raise SettingsError(f"{where}: exactly one of tag and list is needed")
    if table.get("untag_when_gone") and not table.get("tag"):
        raise SettingsError(f"{where}: untag_when_gone needs tag")
    return Activation(name, **table)


def _check_value(where: str, key: str, value: Any) -> None:
    if key not in _TYPES:
        raise SettingsError(f"{where}: {key} is not known; it takes {', '.join(_TYPES)}")
    kind = _TYPES[key]
    if not isinstance(value, kind):
        wanted = "true or false" if kind is bool else "a text in quotation marks"
        raise SettingsError(f"{where}: {key} is {wanted}")
    if key == "verify" and value not in VERIFY:
        raise SettingsError(f"{where}: verify is one of {', '.join(VERIFY)}")
