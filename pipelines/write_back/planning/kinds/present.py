"""How a contact stands on a list, as far as it is known: the warehouse's row, and over it what we have sent since it was read.

Belongs here: comparing custom fields in every form in which the service shows them, or does not. Not here: what a row wants.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from pipelines.write_back.input.columns import fold
from pipelines.write_back.input.rows import cell_of, text_of
from pipelines.write_back.item import Past
from pipelines.write_back.planning.draft import is_done, is_newer, is_open
from pipelines.write_back.planning.known import Member

_encode = msgspec.json.Encoder(order="sorted").encode
_decode = msgspec.json.Decoder().decode


@dataclass(frozen=True, slots=True)
class Content:
    """What a sync says about one contact on one list, as an effect remembers it. `status` None: it leaves it as it is."""

    status: int | None
    fields: Mapping[str, str]
    ip: str | None = None

    @property
    def text(self) -> str:
        said = {"status": self.status, "fields": self.fields, "ip": self.ip}
        return _encode({name: value for name, value in said.items() if value not in (None, {})}).decode()

    @staticmethod
    def read(text: str) -> Content:
        said = _decode(text)
        return Content(said.get("status"), said.get("fields", {}), said.get("ip"))


@dataclass(frozen=True, slots=True)
class Present:
    """`status`: code, None when not known for sure, or not the same for all. `is_ours`: some of it we sent and did not read yet;
    `is_queued`: some of it is still to be sent. `remembered`: fields of our last sync that the service does not show.
    """

    exists: bool
    status: int | None = None
    fields: Mapping[str, str] = field(default_factory=dict)
    remembered: Mapping[str, str] = field(default_factory=dict)
    is_ours: bool = False
    is_queued: bool = False


class Reader:
    """Reads the contacts of one list. `labels`: field id → label; `shown_keys`: keys under which any contact shows values."""

    def __init__(self, labels: Mapping[str, str], shown_keys: Collection[str]) -> None:
        many = Counter(map(fold, labels.values()))
        self._labels = labels
        self._by_key: dict[str, str | None] = {}
        self._by_label = {fold(label): field_id for field_id, label in labels.items() if many[fold(label)] == 1}
        self._shown = {field_id for key in shown_keys if (field_id := self._field_of(key)) is not None}

    def present(self, members: list[Member], past: Past | None, as_of: float | None, removal: Past | None = None) -> Present:
        """`removal`: what took the contact off the list, unless a later sync has put it there again."""
        if removal is not None:
            if past is None or past.item_id < removal.item_id:
                return Present(False)
            members = []
        status, fields = self._read(members)
        remembered: Mapping[str, str] = {}
        is_drifted = past is not None and past.is_drifted and is_newer(past, as_of)
        if past is None or not (is_done(past) or is_open(past) or is_drifted):
            return Present(bool(members), status, fields)
        sent = Content.read(past.content)
        if is_drifted:  # neither as it was before, nor as it was sent
            left = {field_id: text for field_id, text in fields.items() if field_id not in sent.fields}
            return Present(bool(members), None if sent.status is not None else status, left)
        if not is_newer(past, as_of):
            remembered = {field_id: text for field_id, text in sent.fields.items() if field_id not in self._shown}
            return Present(bool(members), status, fields, remembered)
        status = status if sent.status is None else sent.status
        return Present(True, status, {**fields, **sent.fields}, is_ours=True, is_queued=is_open(past))

    def is_so(self, now: Present, field_id: str, text: str) -> bool:
        """Whether the field is known to have this value; what is shown for others and not here is empty."""
        if (value := now.fields.get(field_id, now.remembered.get(field_id))) is not None:
            return value == text
        return not text and field_id in self._shown

    def _read(self, members: list[Member]) -> tuple[int | None, dict[str, str]]:
        """Status and fields that all the contacts have alike (a sync changes every contact with the address on the list)."""
        if not members:
            return None, {}
        status, fields = members[0].status_code, self._fields(members[0].fields)
        for member in members[1:]:
            others = self._fields(member.fields)
            status = status if member.status_code == status else None
            fields = {field_id: text for field_id, text in fields.items() if others.get(field_id) == text}
        return status, fields

    def _fields(self, shown: str | None) -> dict[str, str]:
        if not shown:
            return {}
        values = _decode(shown)
        if not isinstance(values, dict):
            return {}
        return {
            field_id: text
            for key, value in values.items()
            if (field_id := self._field_of(key)) is not None and (text := _text(value)) is not None
        }

    def _field_of(self, key: str) -> str | None:
        """The field that a key of an answer stands for: its id, or its label."""
        if key not in self._by_key:
            self._by_key[key] = key if key in self._labels else self._by_label.get(fold(key))
        return self._by_key[key]


def _text(value: Any) -> str | None:
    """None for what cannot be compared."""
    if type(value) is str:
        return value.strip()
    if isinstance(value, dict):
        return _text(value["value"]) if "value" in value else None
    if value is None or value == []:
        return ""
    return None if isinstance(value, list) else text_of(cell_of(value)) or ""
