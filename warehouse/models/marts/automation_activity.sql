-- What each automation sent on a day, and how people reacted; one row per automation, channel and day.
with accounts as (
    select account, timezone, today from {{ ref('int_accounts') }}
)

select
    account,
    coalesce(automation, '(no name)') as automation,
    channel,
    {{ local_date('sent_at', 'timezone') }} as triggered_on,
    case when count(*) = count(campaign_id) and min(campaign_id) = max(campaign_id)
        then min(campaign_id) end as campaign_id,
    count(*) as triggered_count,
    count(distinct contact_id) as contact_count,
    count(*) filter (where is_told) as open_known_count,
    case when count(*) filter (where is_told) > 0 then count(*)
        filter (where is_told and is_opened) end as opened_count,
    count(is_clicked) as click_known_count,
    case when count(is_clicked) > 0 then count(*) filter (where is_clicked) end as clicked_count,
    {{ safe_rate('count(*) filter (where is_told and is_opened)',
        'count(*) filter (where is_told)') }} as open_of_sent_rate,
    {{ safe_rate('count(*) filter (where is_clicked)', 'count(is_clicked)') }} as click_of_sent_rate,
    -- clocks may differ by a minute; an opening long before the sending proves nothing
    median(greatest(date_diff('minute', sent_at, opened_at), 0) / 60.0)
        filter (where date_diff('minute', sent_at, opened_at) >= -1) as median_hours_to_open
from (select *, {{ can_tell_opening() }} as is_told from {{ ref('contact_campaign') }})
join accounts using (account)
where kind = 'automated' and {{ is_plausible(local_date('sent_at', 'timezone'), 'today') }}
group by all
