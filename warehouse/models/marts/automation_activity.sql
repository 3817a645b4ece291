-- What each automation sent on a day and how people reacted; one row per automation, channel and day.
with accounts as (
    select account, timezone from {{ ref('int_accounts') }}
)

select
    account,
    coalesce(automation, '(no name)') as automation,
    channel,
    {{ local_date('sent_at', 'timezone') }} as triggered_on,
    case when count(*) = count(campaign_id) and min(campaign_id) = max(campaign_id) then min(campaign_id) end as campaign_id,
    count(*) as triggered_count,
    count(distinct contact_id) as contact_count,
    count(*) filter (where is_opened) as opened_count,
    count(*) filter (where is_clicked) as clicked_count,
    {{ safe_rate('count(*) filter (where is_opened)', "count(*) filter (where channel <> 'sms')") }} as open_of_sent_rate,
    {{ safe_rate('count(*) filter (where is_clicked)', "count(*) filter (where channel <> 'sms')") }} as click_of_sent_rate,
    median(date_diff('minute', sent_at, opened_at) / 60.0) as median_hours_to_open
from {{ ref('contact_campaign') }}
join accounts using (account)
where kind = 'automated' and sent_at is not null
group by all
