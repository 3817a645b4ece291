-- Weekdays and hours at which standard campaigns do well; one row per account, weekday and hour of sending.

with campaigns as (
    select * from {{ ref('campaign_performance') }}
    where type = 'standard' and sent_at is not null and sent_count > 0 and opened_count is not null
        and delivered_count is not null
),

accounts as (
    select * from {{ ref('int_accounts') }}
),

placed as (
    select campaigns.*, campaigns.sent_at at time zone accounts.timezone as sent_local
    from campaigns
    join accounts using (account)
    where {{ is_plausible(local_date('campaigns.sent_at', 'accounts.timezone'), 'accounts.today') }}
)

select
    account,
    isodow(sent_local) as weekday_number,
    dayname(sent_local) as weekday,
    hour(sent_local) as hour,
    count(*) as campaign_count,
    sum(sent_count)::bigint as sent_count,
    sum(delivered_count)::bigint as delivered_count,
    sum(opened_count)::bigint as opened_count,
    {{ whole_sum('clicker_count') }} as clicker_count,
    {{ rate('open_rate', over='sum({})') }} as open_rate,
    {{ rate('click_rate', over='(' ~ whole_sum('{}') ~ ')') }} as click_rate,
    count(*) = 1 or {{ is_small_sample('sum(delivered_count)') }} as is_small_sample
from placed
group by all
