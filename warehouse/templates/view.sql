-- Current rows of << table.qualified >>; one row per << table.key | join(", ") or "account" >>.
select
<% for column, name in columns(table) %>
    << name if column.name == name else column.name ~ " as " ~ name >><< "," if not loop.last >>
<% endfor %>
from {{ source('source', '<< table.name >>') }}
<% if table.marks_deleted %>
where _deleted_at is null
<% endif %>
