-- The tables of all schemas in the order of $schemas, contacts first; one row per table, with its columns as
-- (name, type).
select schema_name, table_name, list((column_name, data_type) order by column_index)
from duckdb_columns() semi join duckdb_tables() using (database_name, schema_name, table_name)
where database_name = current_database()
group by schema_name, table_name
order by list_position($schemas, schema_name) nulls last, schema_name, table_name <> 'contacts', table_name
