-- Rows that stand for groups of people: those of fewer than so many are one row, and when that has fewer
-- itself, the next smallest joins it.
with sized as (
    select *, coalesce(sum({people}) over (
        partition by {apart} order by {people}, {by} rows between unbounded preceding and 1 preceding
    ), 0) as smaller
    from {source}
),
marked as (select *, {people} < {group_min} or smaller between 1 and {group_min} - 1 as is_small from sized)
select {shown} from marked group by {apart}, is_small, case when not is_small then {by} end
