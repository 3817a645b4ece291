"""The Arrow types of declared columns. Apart from `tables`, because importing pyarrow takes a fifth
of a second, which commands that only read tables don't need."""

from collections.abc import Iterable

import pyarrow as pa

from warehouse.tables import Column

#: By type of DuckDB; JSON travels as text.
_BY_SQL_TYPE: dict[str, pa.DataType] = {
    "BIGINT": pa.int64(),
    "VARCHAR": pa.string(),
    "BOOLEAN": pa.bool_(),
    "TIMESTAMPTZ": pa.timestamp("us", "UTC"),
    "DATE": pa.date32(),
    "DECIMAL(18,4)": pa.decimal128(18, 4),
    "DOUBLE": pa.float64(),
    "VARCHAR[]": pa.list_(pa.string()),
    "BIGINT[]": pa.list_(pa.int64()),
    "JSON": pa.string(),
}


def arrow_type(column: Column) -> pa.DataType:
    return _BY_SQL_TYPE[column.sql_type]


def arrow_fields(columns: Iterable[Column]) -> list[pa.Field]:
    return [pa.field(column.name, arrow_type(column)) for column in columns]
