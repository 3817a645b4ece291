-- The last 13 weeks, the newest of which ends today; null where one of its days is not known.
with weeks as (select getvariable('today')::date - 7 * back::integer - 6 as begins_on from range(13) as weeks (back))
select begins_on, if(count(good_count) = 7, sum(good_count), null) as good, if(count(bad_count) = 7, sum(bad_count), null) as bad,
    if(count(joined_count) = 7, sum(joined_count), null) as joined, if(count(left_count) = 7, sum(left_count), null) as gone
from weeks left join marts.account_daily on account = $account and day_on between begins_on and begins_on + 6
group by begins_on order by begins_on
