-- a night without a reading is told by the next one
with days as (select *, max(day_on) over () as last_on from marts.list_growth_daily where account = $account),
recent as (
    select *, last_on - day_on between 1 and 7 as is_recent, day_on = last_on as is_last,
        min(day_on) filter (net_change is not null) over by_list <= last_on - 7
            and max(day_on) filter (net_change is not null) over by_list >= last_on - 1 as is_known
    from days window by_list as (partition by list_id)
),
summed as (
    select any_value(list_name) as name, sum(size) filter (is_last) as size,
        case when bool_and(is_known) then coalesce(sum(joined_count) filter (is_recent), 0) end as joined_7d,
        case when bool_and(is_known) then coalesce(sum(left_count) filter (is_recent), 0) end as left_7d,
        case when bool_and(is_known) then coalesce(sum(net_change) filter (is_recent), 0) end as net_7d,
        case when bool_and(is_known) then coalesce(sum(moved_in_count - moved_out_count) filter (is_recent), 0) end as moved_7d
    from recent group by list_id
)
select * from summed where size > 0 order by size desc, name limit 12
