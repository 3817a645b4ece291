"""The `sync` tables that models read, as Dagster shows them: beside what the steps make, since every step that reads fills them."""

from __future__ import annotations

import dagster as dg

from warehouse.sync_tables import CONTACT_COVERAGE, COVERAGE, READINGS, REJECTED_RECORDS, SyncTable

_READ_BY_MODELS = (COVERAGE, READINGS, CONTACT_COVERAGE, REJECTED_RECORDS)


def sync_tables() -> list[dg.AssetSpec]:
    """One per table, under the key that dbt's manifest gives it."""
    return [_spec(table) for table in _READ_BY_MODELS]


def _spec(table: SyncTable) -> dg.AssetSpec:
    return dg.AssetSpec(
        ["sync", table.name],
        description=f"{table.doc} Filled by every step that reads from the service.",
        group_name="sync",
        kinds={"duckdb"},
        metadata={
            "dagster/table_name": table.qualified,
            "dagster/column_schema": dg.TableSchema(
                [dg.TableColumn(column.name, column.sql_type, description=column.comment) for column in table.columns]
            ),
        },
    )
