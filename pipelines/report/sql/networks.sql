with today as (select max(day_on) as day_on from marts.social_daily where account = $account)
select network,
    case when count(mention_count) filter (s.day_on > today.day_on - 28) = 28
        then sum(mention_count) filter (s.day_on > today.day_on - 28) end as mention_count,
    case when count(post_count) filter (s.day_on > today.day_on - 28) = 28
        then sum(post_count) filter (s.day_on > today.day_on - 28) end as post_count
from marts.social_daily as s, today where account = $account group by network order by mention_count desc nulls last, network
