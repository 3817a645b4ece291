-- Scopes that were not read completely, or have fewer rows than the service counts; one row per account and
-- scope.
select account || ', ' || scope || ': ' || case
    when not is_complete then coalesce(reason, 'not read completely')
    else rows || ' rows, the service counts ' || service_count end as line
from sync.coverage c
where table_name = $table and (not is_complete or rows < service_count) and not exists (
    from sync.coverage o
    where o.account = c.account and o.table_name = c.table_name and o.is_complete
        and (coalesce(o.last_request, 0), o.as_of) > (coalesce(c.last_request, 0), c.as_of)
        and contains(c.scope, '..') and contains(o.scope, '..')
        and split_part(o.scope, '..', 1) <= split_part(c.scope, '..', 1)
        and split_part(o.scope, '..', 2) >= split_part(c.scope, '..', 2)
)
order by account, scope
