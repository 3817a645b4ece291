-- What was read of a range of days that was not complete leaves it, its other days stay as they are; one row
-- per range that is left of one.
create or replace temp table cut as
select *, split_part(scope, '..', 1)::date as first_on, split_part(scope, '..', 2)::date as last_on
from sync.coverage
where account = {account} and table_name = {table} and not is_complete and contains(scope, '..')
    and scope <> {scope}
    and split_part(scope, '..', 1)::date <= date {last} and split_part(scope, '..', 2)::date >= date {first};

delete from sync.coverage where account = {account} and table_name = {table}
    and scope in (select scope from cut);

insert into sync.coverage by name
from (
    select * exclude (first_on, last_on) replace (unnest([
        case when first_on < date {first} then concat(first_on, '..', date {first} - 1) end,
        case when last_on > date {last} then concat(date {last} + 1, '..', last_on) end
    ]) as scope)
    from cut
)
where scope is not null
    and scope not in (select scope from sync.coverage where account = {account} and table_name = {table});

drop table cut;
