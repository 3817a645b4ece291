-- The ranges of days that were read, completely or not; one row per range.
with readings as (
    select *, min(as_of)
        over (order by coalesce(last_request, 0) rows between current row and unbounded following) as read_by
    from sync.coverage where account = $account
)
select split_part(scope, '..', 1)::date as first,
    least(split_part(scope, '..', 2)::date, (read_by at time zone $zone)::date - 1) as last
from readings
where table_name = $table and is_complete = $is_complete and contains(scope, '..') and first <= last
order by all
