"""From records to Arrow: the columns of a table plus what loading needs to know about each row.

Belongs here: values only. Not here: where the rows are kept until they are loaded (`staging`), what is done
to them (`loads/`)."""

import hashlib
import json
from collections.abc import Callable, Sequence
from decimal import Decimal
from functools import cache
from typing import Any

import msgspec
import pyarrow as pa

from marketing_api.address import normal_form
from marketing_api.records.fields import Record
from warehouse.tables import EMAIL, EMAIL_NORMALIZED, EXTRA, Column, Table

#: Beside the record's columns: which response of the load a row is from (its index), its place among all rows
#: of the load, a bit for each column that its response knows, and the hash of a listing's entry.
RESPONSE, PART, KNOWN, ENTRY_HASH = "_response", "_part", "_known", "_entry_hash"

#: What is done to a value before Arrow takes it.
Prepare = Callable[[Any], Any]

_CENTS = Decimal("0.0001")
#: What the conversion of a value that no column can hold raises.
UNFIT = (pa.ArrowException, ArithmeticError, ValueError, TypeError)


def schema(table: Table) -> pa.Schema:
    own = [(column.name, column.arrow_type) for column in (*table.record_columns, EXTRA)]
    return pa.schema(
        [*own, (RESPONSE, pa.int32()), (PART, pa.int64()), (KNOWN, pa.uint64()), (ENTRY_HASH, pa.string())]
    )


_encoder = msgspec.json.Encoder(order="sorted")


def json_text(value: Any) -> str:
    """JSON with sorted keys, so that equal values are equal text. ValueError for what is nested too
    deeply."""
    try:
        try:
            return _encoder.encode(value).decode()
        except (ValueError, TypeError, OverflowError):  # lone surrogates, numbers beyond 64 bits
            return (
                json.dumps(value, sort_keys=True, ensure_ascii=False, default=str)
                .encode("utf-8", "replace")
                .decode()
            )
    except RecursionError:
        raise ValueError("nested too deeply") from None


def entry_hash(record: Record) -> str:
    """Hash of everything that an entry says, for telling whether it changed since its detail was requested
    (32 hex digits)."""
    encoded = {name: getattr(record, name) for name in sorted(record.model_fields_set)}
    return hashlib.blake2b(json_text(encoded).encode(), digest_size=16).hexdigest()


_PREPARED: dict[str, Prepare] = {"JSON": json_text, "DECIMAL(18,4)": lambda value: value.quantize(_CENTS)}


def _source(column: Column) -> tuple[str, Prepare | None]:
    """The record's field that fills the column, and what is done to its values."""
    if column.name == EMAIL_NORMALIZED:
        return EMAIL, lambda address: normal_form(address) or None
    return column.name, _PREPARED.get(column.sql_type)


class Converter:
    """Turns records of one table into Arrow batches."""

    def __init__(self, table: Table) -> None:
        self.schema = schema(table)
        self._table = table
        self._columns = [
            (column.name, *_source(column), column.arrow_type) for column in table.record_columns
        ]
        fields = [field for _, field, *_ in self._columns]
        self._names = frozenset(fields)
        self._mask = cache(lambda known: sum(1 << bit for bit, field in enumerate(fields) if field in known))

    def batch(self, chunk: Sequence[tuple[Record, int]], first_part: int) -> pa.RecordBatch:
        """Records, each with its response, as one batch. ValueError or an ArrowException when a value does
        not fit its column."""
        records, values = [record for record, _ in chunk], [record.__dict__ for record, _ in chunk]
        arrays = [self._array(values, *column) for column in self._columns]
        arrays += [
            pa.array([_extra(record) for record in records], pa.string()),
            pa.array([response for _, response in chunk], pa.int32()),
            pa.array(range(first_part, first_part + len(records)), pa.int64()),
            pa.array(map(self._known, records), pa.uint64()),
            pa.array(
                map(entry_hash, records) if self._table.is_composed else [None] * len(records), pa.string()
            ),
        ]
        return pa.record_batch(arrays, schema=self.schema)

    def fitted(self, record: Record) -> tuple[Record | None, str]:
        """The record without the values that no column can hold, and why; None where one of them is part of
        the key. Slow: for batches that failed."""
        faults: dict[str, None] = {}
        for column in self._columns:
            try:
                self._array([record.__dict__], *column)
            except UNFIT:
                faults[column[1]] = None
        reason = f"{', '.join(faults)}: missing, or too large for the column" if faults else ""
        return None if faults.keys() & set(self._table.key) else record.model_copy(update=faults), reason

    def _array(
        self,
        values: list[dict[str, Any]],
        name: str,
        field: str,
        prepare: Prepare | None,
        arrow_type: pa.DataType,
    ) -> pa.Array:
        column = [value[field] for value in values]
        if prepare is not None:
            column = [None if value is None else prepare(value) for value in column]
        array = pa.array(column, arrow_type)
        if array.null_count and name in self._table.key:
            raise ValueError(f"{name}, which identifies the row, is missing")
        return array

    def _known(self, record: Record) -> int:
        """Where one operation is all there is to a row, a field that it leaves out is empty."""
        if not self._table.is_partial:
            return self._mask(self._names)
        return self._mask(self._names & record.__pydantic_fields_set__)


def _extra(record: Record) -> str | None:
    return json_text(record.__pydantic_extra__) if record.__pydantic_extra__ else None
