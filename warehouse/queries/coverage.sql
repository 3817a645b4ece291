-- What a load read, with what of the coverage before stays; one row per table and scope.
create or replace temp table covered as
select {account} as account, n.table_name, n.scope, {as_of} as as_of, {last}::bigint as last_request, {due} as due_at,
    n.is_complete, coalesce(n.rows, coalesce(o.rows, 0) + n.new) as rows, n.service_count, n.reason
from arrow_coverage n
left join sync.coverage o on o.account = {account} and o.table_name = n.table_name and o.scope = n.scope
