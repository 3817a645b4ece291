-- The last 13 weeks, the newest of which ends today; null where one of its days is not known.
-- Who came and left on a night without a reading, the next one shows.
with weeks as (select getvariable('today')::date - 7 * back::integer - 6 as begins_on from range(13) as weeks (back)),
days as (
    select *, day_on between min(day_on) filter (joined_count is not null) over () and max(day_on) filter (joined_count is not null) over () as is_read
    from marts.account_daily where account = $account
)
select begins_on, if(count(good_count) = 7, sum(good_count), null) as good, if(count(bad_count) = 7, sum(bad_count), null) as bad,
    if(count(*) filter (is_read) = 7, coalesce(sum(joined_count), 0), null) as joined,
    if(count(*) filter (is_read) = 7, coalesce(sum(left_count), 0), null) as gone
from weeks left join days on day_on between begins_on and begins_on + 6
group by begins_on order by begins_on
