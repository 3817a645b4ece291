-- the messages that won people back, of 13 weeks
select coalesce(subject, automation) as message, count(*) as won_back
from marts.contact_lifecycle
where account = $account and transition = 'won back' and message is not null
    and day_on > (select max(day_on) - 91 from marts.account_daily where account = $account)
group by message order by won_back desc, message limit 5
