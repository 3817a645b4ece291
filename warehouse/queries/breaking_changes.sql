-- What readers of the file that was published before can no longer count on; one row per table, or column of
-- one that is still there.
with columns as (
    select database_name, schema_name || '.' || table_name as table_name, column_name, data_type,
        column_index, comment
    from duckdb_columns() where database_name in ('before', 'published') and not internal
),
old as (from columns where database_name = 'before'),
new as (from columns where database_name = 'published'),
gone as (from old anti join new using (table_name, column_name)
    where table_name in (select table_name from new)),
added as (from new anti join old using (table_name, column_name)),
renamed as (
    select g.table_name, g.column_name, min(a.column_name) as new_name
    from gone g join added a on a.table_name = g.table_name and a.data_type = g.data_type
        and (a.column_index = g.column_index or a.comment = g.comment)
    group by all having count(*) = 1
)
select distinct table_name, null as field, 'table dropped' as change, null as before, null as after,
    null as sample
from old where table_name not in (select table_name from new)
union all
select table_name, column_name, if(new_name is null, 'column dropped', 'column renamed'),
    if(new_name is null, null, column_name), new_name, data_type
from gone left join renamed using (table_name, column_name)
union all
select table_name, column_name, 'column type changed', old.data_type, new.data_type, null
from old join new using (table_name, column_name) where old.data_type <> new.data_type
