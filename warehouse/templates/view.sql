-- << "Rows of" if table.marks_deleted else "Current rows of" >> << table.qualified >><< ", deleted ones too" if table.marks_deleted >>; one row per << table.key | join(", ") or "account" >>.
select
<% for column, name in columns(table) %>
    << name if column.name == name else column.name ~ " as " ~ name >><< "," if not loop.last or table.marks_deleted >>
<% endfor %>
<% if table.marks_deleted %>
    _deleted_at is not null as is_deleted
<% endif %>
from {{ source('source', '<< table.name >>') }}
