"""Facts about the entries of responses, collected while they are parsed: their fields, types and
words.

The facts hold nothing about a person. Not here: what is done with them (`drift`)."""

from collections.abc import Callable, Mapping
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
        fields = self.table.record.model_fields.items()
        self._words: dict[str, set[str]] = {
            name: set() for name, info in fields if is_word(info) and not is_personal(info)
        }

    def look_at_rows(self, operation: str, request_id: int, rows: Rows) -> None:
        """Examine some entries of a response."""
        for entry in rows.sample:
            self._look_at_entry("", entry, request_id, _DEPTH)
        if rows.names[1]:
            every, ever = (frozenset(map(_named, names)) for names in rows.names)
            self.names.setdefault((operation, every, ever), request_id)

    def look_around(self, operation: str, request_id: int, parts: Mapping[str, Any]) -> None:
        """Note the types of the members around the entries of a response, by their path in the
        body."""
        for path, kind in ((_named(path), type_of(value)) for path, value in parts.items()):
            self.facts.setdefault((path, TYPE, kind), (request_id, kind))
        if parts:
            names = frozenset(map(_named, parts))
            self.names.setdefault((f"response of {operation}", names, names), request_id)

    def read_words(self, batch: pa.RecordBatch, request_of: Callable[[int], int]) -> None:
        """Every word of the columns that hold words; `request_of` maps a row's position to its
        request."""
        for name, found in self._words.items():
            for word in batch[name].unique().to_pylist() if len(found) <= MOST_WORDS else ():
                if word not in found and not is_nothing(word):
                    found.add(word)
                    self.facts[name, WORD, word] = (
                        request_of(pc.index(batch[name], word).as_py()),
                        word,
                    )

    def _look_at_entry(self, within: str, entry: Any, request_id: int, depth: int) -> None:
        for name, value in entry.items() if isinstance(entry, dict) and depth else ():
            path = f"{within}{_named(name)}"
            kind = type_of(value)
            if (path, TYPE, kind) not in self.facts:
                self.facts[path, TYPE, kind] = (request_id, sample_of(kind, value))
            if kind == "object":
                self._look_at_entry(f"{path}.", value, request_id, depth - 1)
            elif kind == "list":
                for item in islice(list_entries(value), _ENTRIES):
                    self._look_at_entry(f"{path}.", item, request_id, depth - 1)


def type_of(value: Any) -> str:
    """The JSON type: null for values that mean nothing, list for objects that mean a list."""
    if is_nothing(value):
        return "null"
    return "list" if is_numbered(value) else _KINDS.get(type(value), "null")


def sample_of(kind: str, value: Any) -> str:
    """A description of a value without personal data."""
    return _SAMPLES.get(kind, kind).format(len(value) if kind in _SAMPLES else 0)
