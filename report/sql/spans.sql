-- The 13 whole weeks to last Sunday, the 13 before them, and the same 13 a year before; one row per span. A sum
-- is null if a week is unknown; messages are those of campaigns with known openings.
with spans as (
    select place, date_trunc('week', getvariable('today')::date)::date - 91 - back as begins_on
    from (values (0, 0), (1, 91), (2, 364)) as spans (place, back)
),
ratings as (
    select place, avg(rating) as mean_rating, count(rating) as rating_count
    from spans join source.online_reviews on timezone(getvariable('zone'), reviewed_at)::date between begins_on and begins_on + 90
    where account = $account group by place
),
weeks as (select * from marts.period_summary where account = $account and period = 'week')
select if(count(campaign_count) = 13, sum(campaign_count), null) as campaign_count, sum(delivered_count) as delivered_count,
    sum(opened_count) as opened_count, any_value(mean_rating) as average_rating,
    any_value(ratings.rating_count) as rating_count,
    if(count(redeemed_count) = 13, sum(redeemed_count), null) as redeemed_count
from spans left join ratings using (place) left join weeks on weeks.begins_on between spans.begins_on and spans.begins_on + 90
group by place order by place
