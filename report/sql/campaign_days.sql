-- how many openings each reading of the first two weeks after the sending showed
select campaign_id, days.observed_on, days.opened_count from marts.campaign_daily as days join marts.campaign_performance as sent using (account, campaign_id)
where account = $account and days.opened_count is not null and sent.type = 'standard'
    and days.observed_on - timezone(getvariable('zone'), sent_at)::date between 0 and 14
order by campaign_id, days.observed_on
