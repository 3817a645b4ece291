"""The rows of a contact sync, read and checked: who, which lists, which values.

Not here: comparing them with what is known (`contacts`), what single cells mean (`values`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from pipelines.write_back.input import values
from pipelines.write_back.input.columns import Picked
from pipelines.write_back.input.rows import Cell, shown, text_of
from pipelines.write_back.input.values import BadValue
from pipelines.write_back.planning.draft import Draft
from pipelines.write_back.planning.known import Known
from pipelines.write_back.planning.options import Options


class Row(NamedTuple):
    """What a row wants. `values`: title of the column → text, of the cells that say something."""

    number: int
    email: str
    key: str
    lists: tuple[int, ...]
    status: int | None
    ip: str | None
    values: dict[str, str]


class Input:
    """Reads and checks rows, and sorts out those that say again or otherwise what an earlier one says."""

    def __init__(self, draft: Draft, known: Known, picked: Picked, options: Options) -> None:
        self._draft = draft
        self._lists = known.lists
        self._cells = picked.cells
        self._columns = {title: _texts(column, "" if options.clear_empty else None) for title, column in picked.fields.items()}
        self._bad_texts = _bad_texts(self._columns)
        self._foreign: dict[int, list[str]] = {}
        self._seen: dict[tuple[str, int], Row] = {}

    def rows(self) -> Iterator[Row]:
        for index in self._draft.indexes():
            number = self._draft.rows.numbers[index]
            try:
                row = self._checked(self._read(index, number))
            except BadValue as problem:
                self._draft.reject(number, str(problem))
            else:
                yield row

    def _read(self, index: int, number: int) -> Row:
        email = values.address(self._cells["email"][index])
        lists = self._lists.several(self._cells["list"][index])
        status = self._cells["status"][index] if "status" in self._cells else None
        ip = self._cells["ip_address"][index] if "ip_address" in self._cells else None
        said = {title: text for title, column in self._columns.items() if (text := column[index]) is not None}
        if index in self._bad_texts:
            raise BadValue(self._bad_texts[index])
        for list_id in lists:
            for title in self._not_of(list_id):
                if said.get(title):
                    raise BadValue(f"list {shown(self._lists.names[list_id])} has no field {shown(title)}")
        return Row(
            number,
            email,
            email.lower(),
            lists,
            None if status is None else values.status(text_of(status) or ""),
            None if ip is None else values.ip_address(text_of(ip) or ""),
            said,
        )

    def _not_of(self, list_id: int) -> list[str]:
        """Columns that are fields of other lists."""
        if (foreign := self._foreign.get(list_id)) is None:
            own = self._lists.columns_of(list_id, self._columns)
            foreign = self._foreign[list_id] = [title for title in self._columns if title not in own]
        return foreign

    def _checked(self, row: Row) -> Row:
        """The row without the lists for which an earlier row says the same; BadValue when nothing is left, or they disagree."""
        earlier = {list_id: seen for list_id in row.lists if (seen := self._seen.setdefault((row.key, list_id), row)) is not row}
        if not earlier:
            return row
        for list_id, seen in earlier.items():
            if (seen.status, seen.ip, seen.values) != (row.status, row.ip, row.values):
                self._forget(row)
                name = shown(self._lists.names[list_id])
                raise BadValue(f"row {seen.number} says something else about the same address and list {name}: keep one of them")
        left = tuple(list_id for list_id in row.lists if list_id not in earlier)
        if not left:
            raise BadValue(f"it says the same as row {next(iter(earlier.values())).number}")
        return row._replace(lists=left)

    def _forget(self, row: Row) -> None:
        """A bad row is no reason to reject another one."""
        for list_id in row.lists:
            if self._seen[row.key, list_id] is row:
                del self._seen[row.key, list_id]


def _texts(column: list[Cell], empty: str | None) -> list[str | None]:
    return [cell if type(cell) is str else empty if cell is None else text_of(cell) for cell in column]


def _bad_texts(columns: Mapping[str, list[str | None]]) -> dict[int, str]:
    """Place of a row → what is wrong with one of its texts. Columns are checked as a whole, since hardly any has such a text."""
    found: dict[int, str] = {}
    for title, column in columns.items():
        if values.are_plain(column, values.MAX_FIELD):
            continue
        for index, text in enumerate(column):
            try:
                values.check_text(text or "", f"column {shown(title)}", values.MAX_FIELD)
            except BadValue as problem:
                found.setdefault(index, str(problem))
    return found
