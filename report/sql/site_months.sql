-- reviews by site and month in which they were written, of twelve months
select channel, date_trunc('month', timezone(getvariable('zone'), reviewed_at))::date as begins_on, count(*) as review_count, avg(rating) as average_rating
from source.online_reviews
where account = $account and timezone(getvariable('zone'), reviewed_at)::date
    between date_trunc('month', getvariable('today')::date - interval 11 months)::date and getvariable('today')::date
group by all order by channel, begins_on
