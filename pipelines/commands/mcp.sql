-- Marts first: they hold answers.
-- tables
with tables as (
    select schema_name, table_name, comment from duckdb_tables() where database_name = current_database()
    union all select schema_name, view_name, comment from duckdb_views() where database_name = current_database() and not internal
)
from tables order by list_position(['marts', 'source', 'history', 'sync'], schema_name), table_name;

-- columns
select column_name as name, data_type as type, comment from duckdb_columns()
where database_name = current_database() and schema_name = ? and table_name = ? order by column_index;

-- incomplete
select account, table_name, count(*) as parts, count(*) filter (not is_complete) as incomplete_parts, max(as_of) as read_at,
    any_value(reason) filter (not is_complete) as reason
from sync.coverage group by all having incomplete_parts > 0 order by all;
