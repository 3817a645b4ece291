-- The tables with rows about single contacts, except for pushes to them, which are in the outbox; one row per
-- table.
select schema_name, table_name
from duckdb_columns() semi join duckdb_tables() using (database_name, schema_name, table_name)
where database_name = current_database() and schema_name in ('source', 'history', 'sync')
    and table_name <> 'writebacks'
group by all having count(*) filter (column_name in ('account', 'contact_id')) = 2
