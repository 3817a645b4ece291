-- the last 13 whole weeks from Monday on
with weeks as (select date_trunc('week', getvariable('today')::date)::date - 7 * back::integer as begins_on from range(1, 14) as weeks (back)),
-- after the last read timeline, nobody knows who responded
days as (select day_on from marts.account_daily where account = $account and visit_count is not null),
steps as (
    select day_on, count(*) filter (transition in ('activated', 'won back')) as gained, count(*) filter (transition = 'at risk') as lost
    from marts.contact_lifecycle where account = $account group by day_on
)
select begins_on, if(count(day_on) = 7, coalesce(sum(gained), 0), null) as gained, if(count(day_on) = 7, coalesce(sum(lost), 0), null) as lost
from weeks left join (from days left join steps using (day_on)) as known on day_on between begins_on and begins_on + 6
group by begins_on order by begins_on
