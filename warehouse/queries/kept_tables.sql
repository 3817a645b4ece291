-- The tables that a rebuild cannot make of the archive; one row per table.
select schema_name, table_name from duckdb_tables()
where schema_name = 'history' or schema_name = 'sync' and list_contains(?, table_name)
