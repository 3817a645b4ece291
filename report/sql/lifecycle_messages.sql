-- the last messages before people were lost, of 13 weeks
select coalesce(subject, automation) as message, count(*) filter (transition = 'at risk') as at_risk,
    count(*) filter (transition = 'unsubscribed') as unsubscribed, count(*) filter (transition = 'bounced') as bounced
from marts.contact_lifecycle
where account = $account and is_day_known and message is not null and transition in ('at risk', 'unsubscribed', 'bounced')
    and day_on > (select max(day_on) - 91 from marts.account_daily where account = $account)
group by message order by count(*) desc, message limit 5
