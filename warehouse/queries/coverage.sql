-- What a load read, with what of the coverage before stays; one row per table and scope.
create or replace temp table covered as
select {account} as account, n.table_name, n.scope, {as_of} as as_of, {last}::bigint as last_request,
    {due} as due_at,
    n.is_complete, coalesce(n.rows, coalesce(o.rows, 0) + n.new) as rows, n.service_count, n.reason
from arrow_coverage n
left join sync.coverage o on o.account = {account} and o.table_name = n.table_name and o.scope = n.scope;

delete from sync.coverage where account = {account}
    and (table_name, scope) in (select (table_name, scope) from covered);
insert into sync.coverage by name from covered;

-- That scopes of listings were read is kept: figures of a day that was observed rest on it.
create or replace temp table observed as
select account, table_name, scope, as_of, {zone} as timezone, is_complete from covered
    where as_of is not null and table_name in ({listed});
delete from sync.readings r where exists (
    from observed n where r.account = n.account and r.table_name = n.table_name and r.scope = n.scope
        and r.as_of = n.as_of
);
insert into sync.readings by name from observed;
