"""An account's contact lists and their custom fields, and how people name them in an input."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from pipelines.write_back.input.columns import fold
from pipelines.write_back.input.rows import Cell, shown, text_of
from pipelines.write_back.input.values import BadValue


@dataclass(frozen=True)
class Lists:
    """`names`: list id → name. `fields`: list id → field id → label. `by_name`: name, case and outer blanks aside → ids."""

    names: Mapping[int, str]
    fields: Mapping[int, Mapping[str, str]]
    by_name: Mapping[str, tuple[int, ...]]
    _resolved: dict[str, tuple[int, ...]] = field(default_factory=dict, repr=False)

    @staticmethod
    def of(lists: Iterable[tuple[int, str | None]], fields: Iterable[tuple[int, str, str | None]]) -> Lists:
        """From rows of source.lists and source.list_fields."""
        names = {list_id: name or str(list_id) for list_id, name in lists}
        by_name: dict[str, tuple[int, ...]] = {}
        for list_id, name in names.items():
            by_name[_key(name)] = (*by_name.get(_key(name), ()), list_id)
        labels: dict[int, dict[str, str]] = {list_id: {} for list_id in names}
        for list_id, field_id, label in fields:
            labels.setdefault(list_id, {})[field_id] = label or field_id
        return Lists(names, labels, by_name)

    def field_names(self) -> list[str]:
        """Labels, then ids, of all lists' fields, each once."""
        many = [labels for list_id, labels in self.fields.items() if list_id in self.names]
        return list(dict.fromkeys([label for labels in many for label in labels.values()] + [one for labels in many for one in labels]))

    def one(self, cell: Cell, what: str = "the list") -> int:
        """The list that a cell names by id or name."""
        found = self.several(cell, what)
        if len(found) > 1:
            raise BadValue(f"{what} has to be one, and the cell names {len(found)}")
        return found[0]

    def several(self, cell: Cell, what: str = "the list") -> tuple[int, ...]:
        """The lists that a cell names by ids or names, each once: one, or several with commas or semicolons between them."""
        text = text_of(cell)
        if text is None:
            raise BadValue(f"{what} is missing")
        if (known := self._resolved.get(text)) is None:
            known = self._resolved[text] = self._resolve(text, what)
        return known

    def _resolve(self, text: str, what: str) -> tuple[int, ...]:
        """A name may have a comma or semicolon in it, so the longest piece that is a name counts."""
        for separators in ("", ";", ";,"):
            pieces = [text]
            for separator in separators:
                pieces = [part for piece in pieces for part in piece.split(separator)]
            found = [self._find(piece) for piece in pieces if piece.strip()]
            if found and all(found):
                return tuple(dict.fromkeys(list_id for list_id in found if list_id))
        unknown = next((piece.strip() for piece in pieces if piece.strip() and not self._find(piece)), text)
        if unknown == text.strip() and not found:
            raise BadValue(f"{what} is missing")
        near = difflib.get_close_matches(_key(unknown), self.by_name, n=1)
        hint = f"; did you mean {shown(self.names[self.by_name[near[0]][0]])}?" if near else ""
        raise BadValue(f"there is no list {shown(unknown)}{hint}")

    def _find(self, piece: str) -> int | None:
        word = piece.strip()
        plain = word.partition(".")[0] if word.endswith(".0") else word
        if plain.isdecimal() and int(plain) in self.names:
            return int(plain)
        found = self.by_name.get(_key(word), ())
        if len(found) > 1:
            raise BadValue(f"{len(found)} lists are called {shown(word)}: name the list by its id, {' or '.join(map(str, found))}")
        return found[0] if found else None

    def columns_of(self, list_id: int, titles: Iterable[str]) -> dict[str, str]:
        """Column title → the list's field that it names, by id or label. BadValue when a label is not the only one."""
        labels = self.fields.get(list_id, {})
        by_label: dict[str, list[str]] = {}
        for field_id, label in labels.items():
            by_label.setdefault(fold(label), []).append(field_id)
        found: dict[str, str] = {}
        for title in titles:
            same = [field_id for field_id in labels if fold(field_id) == fold(title)] or by_label.get(fold(title), [])
            if len(same) > 1:
                name = shown(self.names[list_id])
                raise BadValue(f"list {name} has {len(same)} fields {shown(title)}: name the column by the field's id")
            if same:
                found[title] = same[0]
        if len(set(found.values())) < len(found):
            raise BadValue(f"two columns name the same field of list {shown(self.names[list_id])}")
        return found


def _key(name: str) -> str:
    return name.strip().casefold()
