<% set rows = "Rows of %s, deleted ones too" if table.marks_deleted else "Current rows of %s" %>
-- << rows % table.qualified >>; one row per << table.key | join(", ") or "account" >>.
select
<% for column, name in columns(table) %>
<% set comma = "," if not loop.last or table.marks_deleted %>
    << name if column.name == name else column.name ~ " as " ~ name >><< comma >>
<% endfor %>
<% if table.marks_deleted %>
    _deleted_at is not null as is_deleted
<% endif %>
from {{ source('source', '<< table.name >>') }}
