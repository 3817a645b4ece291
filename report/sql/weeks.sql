-- Weeks from Monday on, newest first: the current one so far, and 65 whole ones; one row per week.
-- A sum of days is null if one of them is unknown.
with weeks as (
    select today, date_trunc('week', today)::date - 7 * back::integer as begins_on, least(greatest(today - begins_on, 1), 7) as day_count
    from (select getvariable('today')::date as today) cross join range(66) as weeks (back)
),
-- The next night shows the change of a missing night.
days as (
    select * replace (coalesce(left_count, if(day_on between min(day_on) filter (left_count is not null) over ()
            and max(day_on) filter (left_count is not null) over (), 0, null)) as left_count),
        coalesce(social_click_change, if(day_on between min(day_on) filter (social_click_change is not null) over ()
            and max(day_on) filter (social_click_change is not null) over (), 0, null)) as social_click_count
    from marts.account_daily where account = $account
),
-- In an account whose timelines show messages of automations, a week without any had none if they were read since.
automated as (
    select date_trunc('week', triggered_on)::date as begins_on, sum(triggered_count)::bigint as message_count
    from marts.automation_activity where account = $account group by all
),
summed as (
    select begins_on,
        if(count(left_count) >= any_value(day_count), sum(left_count), null) as left_count,
        if(count(visit_count) >= any_value(day_count), sum(visit_count), null) as visit_count,
        if(count(good_count) >= any_value(day_count), sum(good_count), null) as good_count,
        if(count(bad_count) >= any_value(day_count), sum(bad_count), null) as bad_count,
        if(count(mention_count) >= any_value(day_count), sum(mention_count), null) as mention_count,
        if(count(social_click_count) >= any_value(day_count), sum(social_click_count), null) as social_click_count
    from weeks left join days on day_on between begins_on and least(begins_on + 6, today) group by begins_on
)
select begins_on, campaign_count, sent_count,
    coalesce(message_count, if(exists (from automated) and visit_count is not null, 0, null)) as automation_count,
    open_rate, click_rate, joined_count, left_count, visit_count,
    good_count, bad_count, online_review_count, average_rating, rating_count, mention_count, social_click_count, redeemed_count
from summed left join (from marts.period_summary where account = $account and period = 'week') using (begins_on)
left join automated using (begins_on)
order by begins_on desc
