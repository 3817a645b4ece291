-- The last whole week from Monday on; a night without a reading counts with the next one. The twelve largest
-- lists, and all others in one row, so that the rows add up.
with days as (
    select *, day_on - date_trunc('week', getvariable('today')::date)::date as place, day_on = max(day_on) over () as is_last
    from marts.list_growth_daily where account = $account
),
summed as (
    select any_value(list_name) as name, coalesce(sum(size) filter (is_last), 0) as size, sum(active_size) filter (is_last) as active_size,
        min(place) filter (net_change is not null) <= -7 and max(place) filter (net_change is not null) >= -1 as is_known,
        if(is_known, coalesce(sum(joined_count) filter (place between -7 and -1), 0), null) as joined_count,
        if(is_known, coalesce(sum(left_count) filter (place between -7 and -1), 0), null) as left_count,
        if(is_known, coalesce(sum(moved_in_count - moved_out_count) filter (place between -7 and -1), 0), null) as moved_count
    from days group by list_id
),
placed as (
    select *, least(row_number() over (order by size desc, name), 13) as place from summed
    where size > 0 or joined_count > 0 or left_count > 0 or moved_count <> 0
)
select if(count(*) = 1, any_value(name), count(*) || ' other lists') as name, sum(size) as size, sum(active_size) as active_size,
    if(count(joined_count) = count(*), sum(joined_count), null) as joined_count, if(count(left_count) = count(*), sum(left_count), null) as left_count,
    if(count(moved_count) = count(*), sum(moved_count), null) as moved_count
from placed group by place order by place
