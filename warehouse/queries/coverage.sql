-- The scopes that a load read, combined with the coverage from before; one row per table and scope.
-- arrow_coverage: if `rows` is NULL, `new` is added to the count. is_listed: rows appear and disappear scope by
-- scope.
create or replace temp table covered as
with read as (
    select *, is_complete or getvariable('has_responses') as is_later from arrow_coverage
)
select getvariable('account') as account, n.table_name, n.scope,
    case when is_later then getvariable('as_of') else o.as_of end as as_of,
    case when is_later then getvariable('last_request') else o.last_request end as last_request,
    getvariable('due_at') as due_at, n.is_complete,
    coalesce(n.rows, coalesce(o.rows, 0) + n.new) as rows, n.service_count, n.reason, n.is_refused,
    n.is_listed
from read n
left join sync.coverage o
    on o.account = getvariable('account') and o.table_name = n.table_name and o.scope = n.scope;

delete from sync.coverage where account = getvariable('account')
    and (table_name, scope) in (select (table_name, scope) from covered);
insert into sync.coverage by name select * exclude (is_listed) from covered;

-- Keep a record of each reading of a listing's scope: figures of observed days depend on it.
create or replace temp table observed as
select account, table_name, scope, as_of, getvariable('zone') as timezone, is_complete from covered
where as_of is not null and is_listed;
delete from sync.readings r where exists (
    from observed n where r.account = n.account and r.table_name = n.table_name and r.scope = n.scope
        and r.as_of = n.as_of
);
insert into sync.readings by name from observed;
