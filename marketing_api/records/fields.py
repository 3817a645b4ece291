"""What a record is, and how the types of its fields are read. No other package has to know how
untidy the values are.

Not here: which fields a record has (`records/AREA.py`), reading single values (`values`),
collections (`shapes`). Zone-dependent types read the account's time zone from pydantic's validation
context (`{"zone": ZoneInfo}`)."""

import datetime as dt
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from typing import Annotated, Any, TypeVar

from pydantic import AliasChoices, BaseModel, ConfigDict, Field, PlainValidator, ValidationInfo
from pydantic.fields import FieldInfo

from marketing_api.records.shapes import CutEntry, Entry, is_numbered, list_entries
from marketing_api.records.values import (
    as_text,
    is_nothing,
    read_bool,
    read_decimal,
    read_int,
    read_moment,
    read_network,
    read_text,
    read_word,
    read_zone,
)

Value = TypeVar("Value")


class Record(BaseModel):
    """One row's worth of the service's data. Fields it does not know are kept in `extra`, never
    dropped.

    A field of a plain type is read from every form in which the service writes such a value
    (`_READERS`)."""

    model_config = ConfigDict(
        extra="allow", frozen=True, populate_by_name=True, protected_namespaces=()
    )

    @classmethod
    def __pydantic_init_subclass__(cls, **options: Any) -> None:
        for info in cls.model_fields.values():
            info.metadata = info.metadata or [_READERS[info.annotation]]
        cls.model_rebuild(force=True)

    @property
    def extra(self) -> Entry | None:
        """The fields that the declaration does not name, as they came; None when there are none."""
        return self.model_extra or None


@dataclass(frozen=True, slots=True)
class Unread:
    """An entry, or a part of one, that could not be read. It is kept unchanged with the reason,
    which names fields and never values.

    `is_entry`: False for a whole collection that was missing. Then nothing is kept, but no row
    counts as deleted."""

    raw: Any
    reason: str
    is_entry: bool = True


def mark_missing(record: type[Record], name: str) -> tuple[type[Record], Unread]:
    """Means that a response does not show which entries of `record` exist: their collection is
    null, missing or contradicts its count."""
    return record, Unread(None, f"{name}: missing from the response", is_entry=False)


#: What a `rows` function yields: each entry of a response with the record that it should become. An
#: entry holds only what the response has, under the service's names or the fields' names. An entry
#: that is no object, and `Unread`, are passed on and rejected later.
Rows = Iterator[tuple[type[Record], Any]]


#: Marks a field as personal data: anything that names, reaches or quotes a person, including free
#: text by people.
_PERSONAL: Entry = {"personal": True}
#: Marks a field that is a link or a text with links: one to a person's own page has their name or
#: address in it.
_LINK: Entry = {"link": True}


def field(
    doc: str, *wire: str, personal: bool = False, link: bool = False, default: Any = None
) -> Any:
    """A field that a response may lack; `model_fields_set` says whether it did. `wire` are the
    service's names for it; the machine-readable description spells some in lower case."""
    lower_case = map(str.lower, wire)
    spellings = dict.fromkeys((*wire, *lower_case))
    marks: dict[str, Any] = {}
    if personal:
        marks = _PERSONAL
    elif link:
        marks = _LINK
    return Field(
        default=default,
        description=doc,
        validation_alias=AliasChoices(*spellings) if spellings else None,
        json_schema_extra=marks or None,
    )


#: A field that identifies the record.
key = partial(field, default=...)


def is_personal(info: FieldInfo) -> bool:
    return info.json_schema_extra == _PERSONAL


def is_link(info: FieldInfo) -> bool:
    return info.json_schema_extra == _LINK


def is_word(info: FieldInfo) -> bool:
    return _WORD in info.metadata


def zone_of(info: ValidationInfo) -> dt.tzinfo:
    """The account's time zone from the validation context; UTC last (observation 20)."""
    zone: dt.tzinfo | None = (info.context or {}).get("zone")
    return zone or dt.UTC


def _read_local_moment(value: Any, info: ValidationInfo) -> dt.datetime | None:
    return read_moment(value, zone_of(info))


def _local_date(value: Any, info: ValidationInfo) -> dt.date | None:
    if type(value) is dt.date:
        return value
    moment = _read_local_moment(value, info)
    return moment and moment.astimezone(zone_of(info)).date()


def _require_value(value: Value | None) -> Value:
    if value is None:
        raise ValueError("must not be empty")
    return value


def _key_text(value: Any) -> str:
    if isinstance(value, float):
        raise ValueError("not a text")  # 1.0 and 1 would be two keys
    text = _require_value(read_text(value))
    return _require_value(text if text.strip() else None)


def _read_json(value: Any) -> Any:
    if is_nothing(value):
        return None
    if isinstance(value, (dict, list)):
        return value
    return [value]


def _read_texts(value: Any) -> list[str] | None:
    if value is None:
        return None
    if isinstance(value, dict) and value and not is_numbered(value):
        raise ValueError("not a list of texts")
    if isinstance(value, str) and is_nothing(value):
        return []
    items = (item for item in list_entries(value) if not isinstance(item, CutEntry))
    return [text for item in items if (text := read_text(item)) is not None]


def _use_reader(read: Callable[[Any], Any]) -> PlainValidator:
    """Pydantic does not validate the reader's result again, which would take a third of the
    time."""
    return PlainValidator(read, json_schema_input_type=Any)


def _use_reader_or_none(read: Callable[[Any], Any]) -> PlainValidator:
    """No reader accepts a missing value, so only refused values are checked for that."""

    def read_or_nothing(value: Any) -> Any:
        try:
            return read(value)
        except ValueError:
            if is_nothing(value):
                return None
            raise

    return _use_reader(read_or_nothing)


#: Plain types of fields: None where nothing is given.
MaybeText = str | None
MaybeInt = int | None
MaybeFloat = float | None
MaybeBool = bool | None
MaybeMoment = dt.datetime | None
MaybeDate = dt.date | None
_READERS: dict[Any, PlainValidator] = {
    int: _use_reader(read_int),
    MaybeInt: _use_reader_or_none(read_int),
    MaybeFloat: _use_reader_or_none(lambda value: float(read_decimal(value))),
    Decimal | None: _use_reader_or_none(read_decimal),
    MaybeBool: _use_reader_or_none(read_bool),
    str: _use_reader(_key_text),  # it identifies something, and so is not blank
    MaybeText: _use_reader(read_text),
    MaybeMoment: PlainValidator(_read_local_moment),
    MaybeDate: PlainValidator(_local_date),
    dt.date: PlainValidator(lambda value, info: _require_value(_local_date(value, info))),
}
#: Marks types whose values are words of an open set: the service may send new ones.
_WORD = "word"

#: Any value as text, structures as JSON.
RawText = Annotated[str | None, _use_reader(as_text)]
#: A word of an open set in lower case.
ApiWord = Annotated[str, _use_reader(read_word), _WORD]
MaybeWord = Annotated[str | None, _use_reader_or_none(read_word), _WORD]
Network = Annotated[str, _use_reader(read_network), _WORD]
MaybeZone = Annotated[str | None, _use_reader_or_none(read_zone)]
#: A word of an open set as the service writes it.
AsWorded = Annotated[str | None, _use_reader(read_text), _WORD]
#: Texts in any shape of a collection; a single text becomes a list of one.
MaybeTexts = Annotated[list[str] | None, _use_reader(_read_texts)]
#: Any JSON value, unchanged (a single value as a list of one); None for an empty collection.
Json = Annotated[Entry | list[Any] | None, _use_reader(_read_json)]
