-- Removes the days that were read now from ranges that were incomplete, and keeps their other days; one row per
-- remaining range. arrow_ranges: table_name, scope (first..last) of the days that were read now.
create or replace temp table cut as
with read as (
    select table_name, scope as own, split_part(scope, '..', 1)::date as first,
        split_part(scope, '..', 2)::date as last
    from arrow_ranges
)
select c.*, split_part(scope, '..', 1)::date as first_on, split_part(scope, '..', 2)::date as last_on,
    read.first, read.last
from sync.coverage c join read using (table_name)
where account = getvariable('account') and not is_complete and contains(scope, '..') and scope <> own
    and first_on <= read.last and last_on >= read.first;

delete from sync.coverage
where account = getvariable('account') and (table_name, scope) in (select (table_name, scope) from cut);

insert into sync.coverage by name
from (
    select * exclude (first_on, last_on, first, last) replace (unnest([
        case when first_on < first then concat(first_on, '..', first - 1) end,
        case when last_on > last then concat(last + 1, '..', last_on) end
    ]) as scope)
    from cut
)
where scope is not null and (account, table_name, scope) not in (
    select (account, table_name, scope) from sync.coverage
);

drop table cut;
