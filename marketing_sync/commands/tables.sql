-- Marts come first, since they have the answers.
-- tables
with tables as (
    select schema_name, table_name, comment from duckdb_tables() where database_name = current_database()
    union all select schema_name, view_name, comment from duckdb_views() where database_name = current_database() and not internal
)
from tables order by list_position(['marts', 'custom', 'source', 'history', 'sync'], schema_name), table_name;

-- columns
select column_name as name, data_type as type, comment from duckdb_columns()
where database_name = current_database() and schema_name = ? and table_name = ? order by column_index;
