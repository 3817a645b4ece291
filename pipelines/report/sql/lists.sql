with recent as (
    select *, max(day_on) over () - day_on between 1 and 7 as is_recent, day_on = max(day_on) over () as is_last
    from marts.list_growth_daily where account = $account
),
summed as (
    select any_value(list_name) as name, sum(size) filter (is_last) as size,
        case when bool_and(joined_count is not null) filter (is_recent) then sum(joined_count) filter (is_recent) end as joined_7d,
        case when bool_and(left_count is not null) filter (is_recent) then sum(left_count) filter (is_recent) end as left_7d,
        case when bool_and(net_change is not null) filter (is_recent) then sum(net_change) filter (is_recent) end as net_7d,
        case when bool_and(moved_in_count is not null) filter (is_recent)
            then sum(moved_in_count - moved_out_count) filter (is_recent) end as moved_7d
    from recent group by list_id
)
select * from summed where size > 0 order by size desc, name limit 12
