"""Facts about the entries of responses, collected while they are parsed: their fields, types and
words.

The facts hold nothing about a person. Not here: what is done with them (`drift`)."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import islice
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from marketing_api.address import mask_addresses
from marketing_api.parsing import Rows
from marketing_api.records.fields import is_personal, is_word
from marketing_api.records.shapes import is_numbered, list_entries
from marketing_api.records.values import is_nothing
from warehouse.tables import Table

#: Kinds of facts about a field: a type, a word, or an operation whose responses always have it.
TYPE = "type"
WORD = "word"
ALWAYS = "always"
#: A field with more words is no enumeration.
MOST_WORDS = 200
#: How many entries of a list are examined, and how deep.
_ENTRIES = 3
_DEPTH = 3
_KINDS = {
    bool: "true/false",
    int: "number",
    float: "number",
    str: "text",
    list: "list",
    dict: "object",
}
_named = lru_cache(10_000)(mask_addresses)  # the name of a member may be an address
_SAMPLES = {"text": "text of {} characters", "list": "list of {}", "object": "object of {} fields"}


@dataclass
class Shapes:
    """The facts of one table: each fact (field, kind, what) with the first request that showed it
    and a sample; and by operation the names that every entry of a batch had, and those that any
    had, with the first request of each."""

    table: Table
    facts: dict[tuple[str, str, str], tuple[int, str]] = field(default_factory=dict)
    names: dict[tuple[str, frozenset[str], frozenset[str]], int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._words: dict[str, set[str]] = {}
        for name, info in self.table.record.model_fields.items():
            if is_word(info) and not is_personal(info):
                self._words[name] = set()

    def look_at_rows(self, operation: str, request_id: int, rows: Rows) -> None:
        """Examine some entries of a response."""
        for entry in rows.sample:
            self._look_at_entry("", entry, request_id, _DEPTH)
        names_of_every, names_of_any = rows.names
        if names_of_any:
            every = frozenset(map(_named, names_of_every))
            ever = frozenset(map(_named, names_of_any))
            self.names.setdefault((operation, every, ever), request_id)

    def look_around(self, operation: str, request_id: int, parts: Mapping[str, Any]) -> None:
        """Note the types of the members around the entries of a response, by their path in the
        body."""
        for path, value in parts.items():
            kind = type_of(value)
            fact = (_named(path), TYPE, kind)
            self.facts.setdefault(fact, (request_id, kind))
        if parts:
            source = f"response of {operation}"
            names = frozenset(map(_named, parts))
            self.names.setdefault((source, names, names), request_id)

    def read_words(self, batch: pa.RecordBatch, request_of: Callable[[int], int]) -> None:
        """Every word of the columns that hold words; `request_of` maps a row's position to its
        request."""
        for name, found in self._words.items():
            if len(found) > MOST_WORDS:
                continue
            column = batch[name]
            for word in column.unique().to_pylist():
                if word in found or is_nothing(word):
                    continue
                found.add(word)
                position = pc.index(column, word).as_py()
                request_id = request_of(position)
                self.facts[name, WORD, word] = (request_id, word)

    def _look_at_entry(self, within: str, entry: Any, request_id: int, depth: int) -> None:
        if not isinstance(entry, dict) or not depth:
            return
        for name, value in entry.items():
            path = within + _named(name)
            kind = type_of(value)
            fact = (path, TYPE, kind)
            if fact not in self.facts:
                sample = sample_of(kind, value)
                self.facts[fact] = (request_id, sample)
            members: Iterable[Any] = ()
            if kind == "object":
                members = (value,)
            elif kind == "list":
                members = islice(list_entries(value), _ENTRIES)
            for member in members:
                self._look_at_entry(f"{path}.", member, request_id, depth - 1)


def type_of(value: Any) -> str:
    """The JSON type: null for values that mean nothing, list for objects that mean a list."""
    if is_nothing(value):
        return "null"
    if is_numbered(value):
        return "list"
    return _KINDS.get(type(value), "null")


def sample_of(kind: str, value: Any) -> str:
    """A description of a value without personal data."""
    template = _SAMPLES.get(kind)
    if template is None:
        return kind
    return template.format(len(value))
