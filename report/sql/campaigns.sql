select campaign_id, subject, nullif(name, subject) as name, type, sent_at, created_at, sent_count, delivered_count,
    opened_count, clicker_count, open_rate, click_rate,
    bounce_rate, unsubscribe_rate, bounced_count, unsubscribed_count, comparable_count_90d, median_open_rate_90d, open_rate_over_median,
    opened_percent, is_percent_inconsistent, count(*) over () as campaign_count
from marts.campaign_performance
where account = $account and sent_count > 0 and not is_deleted
-- a date that has not come yet is wrong
order by coalesce(timezone(getvariable('zone'), coalesce(sent_at, created_at))::date <= getvariable('today')::date, true) desc,
    coalesce(sent_at, created_at) desc limit 20
