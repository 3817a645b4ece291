with days as (select day_on from marts.account_daily where account = $account),
steps as (
    select day_on, count(*) filter (transition in ('activated', 'won back')) as gained, count(*) filter (transition = 'at risk') as lost
    from marts.contact_lifecycle where account = $account group by day_on
)
select day_on, coalesce(gained, 0) as gained, coalesce(lost, 0) as lost from days left join steps using (day_on)
