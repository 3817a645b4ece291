-- What is counted by day: yesterday, the week that ends with it and the one before, null where not known, and how many are usual in a week.
-- One row per count, in the order of the page. A day without a row had nothing; a span with a day that is not known is not known.
with counts as (
    select day_on, unnest([
        {place: 1, name: 'Contacts joined', is_seen: true, counted: joined_count::double},
        {place: 2, name: 'Contacts left', is_seen: true, counted: left_count},
        {place: 3, name: 'Messages sent', is_seen: true, counted: sent_change},
        {place: 4, name: 'Messages opened', is_seen: true, counted: opened_change},
        {place: 5, name: 'Clicks in messages', is_seen: true, counted: click_change},
        {place: 6, name: 'Unsubscribed by a message', is_seen: true, counted: unsubscribed_change},
        {place: 7, name: 'Visits of contacts to your pages', is_seen: false, counted: visit_count},
        {place: 8, name: 'Good reviews', is_seen: false, counted: good_count},
        {place: 9, name: 'Bad reviews', is_seen: false, counted: bad_count},
        {place: 10, name: 'Reviews on review sites', is_seen: false, counted: online_review_count},
        {place: 11, name: 'Mentions on social networks', is_seen: false, counted: mention_count},
        {place: 12, name: 'Clicks on links in posts', is_seen: true, counted: social_click_change}
    ], recursive := true)
    from marts.account_daily where account = $account
    union all
    select redeemed_on, 13, 'Coupons redeemed', false, count(coupon_id)
    from source.coupons where account = $account group by redeemed_on
    union all
    select null, 13, 'Coupons redeemed', false, null
),
-- What is seen as a change since the night before happened on the day before; the next night shows what a missing one would.
days as (
    select place, name, day_on - is_seen::integer as day_on,
        if(is_seen and counted is null and day_on between first_on and last_on, 0, counted) as counted, first_on - is_seen::integer as known_from
    from (
        select *, min(day_on) filter (counted is not null) over by_place as first_on,
            max(day_on) filter (counted is not null) over by_place as last_on
        from counts window by_place as (partition by place)
    )
),
-- Yesterday is -1; of the weeks that end with it, the last one is 0.
spans as (
    select span, if(span < 0, today - 1, today - 7 * (span + 1)) as begins_on, if(span < 0, today, today - 7 * span) as ends_on
    from (select unnest(range(-1, 9))::integer as span, getvariable('today')::date as today)
),
totals as (
    select place, name, span, known_from <= begins_on and count(*) filter (is_within and counted is null) = 0 as is_known,
        if(is_known, coalesce(sum(counted) filter (is_within), 0), null) as total
    from (select *, coalesce(day_on >= begins_on and day_on < ends_on, false) as is_within from days cross join spans)
    group by place, name, span, known_from, begins_on
),
-- Around the middle of earlier weeks, twice their median absolute deviation (1.4826 of which are one standard deviation of a normal
-- distribution) or a count's own root; nothing is usual with less than four weeks.
usual as (
    select place, median(total) as middle, 2 * greatest(1.4826 * mad(total), sqrt(abs(middle)), 1) as reach,
        greatest(floor(middle - reach), 0) as usual_least, ceil(middle + reach) as usual_most
    from totals where span > 0 group by place having count(total) >= 4
),
found as (
    select place, name, max(total) filter (span = -1) as yesterday, max(total) filter (span = 0) as week,
        max(total) filter (span = 1) as week_before, usual_least, usual_most
    from totals left join usual using (place) group by all
)
-- How far the week is outside of what is usual, in widths of that range.
select name, yesterday, week, week_before, week - week_before as difference, usual_least, usual_most,
    coalesce(yesterday, week, week_before) is not null as is_known,
    greatest(week - usual_most, usual_least - week, 0) / greatest(usual_most - usual_least, 1) as surprise
from found order by place
