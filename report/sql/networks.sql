-- The 28 whole days up to yesterday, since today is incomplete. Posts are read for all networks together: a
-- network without a row on a day that was read had none.
with days as (from marts.social_daily where account = $account),
recent as (from days where day_on between getvariable('today')::date - 28 and getvariable('today')::date - 1),
read as (
    select count(post_count) = 28 as is_read from marts.account_daily
    where account = $account and day_on between getvariable('today')::date - 28 and getvariable('today')::date - 1
)
select network, if(count(recent.mention_count) = 28, sum(recent.mention_count), null) as mention_count,
    if(any_value(is_read), coalesce(sum(recent.post_count), 0), null) as post_count
from (select distinct network from days) left join recent using (network) cross join read
group by network order by mention_count desc nulls last, network
