-- Where something was not read completely.
-- incomplete
select account, table_name, count(*) as parts, count(*) filter (not is_complete) as incomplete_parts, max(as_of) as read_at,
    any_value(reason) filter (not is_complete) as reason
from sync.coverage group by all having incomplete_parts > 0 order by all;
