-- What became of the addresses that registered in a month; one row per month.
with accounts as (
    select account, timezone from {{ ref('int_accounts') }}
)

select
    account,
    date_trunc('month', {{ local_date('registered_at', 'timezone') }})::date as registered_month,
    count(*) as address_count,
    count(*) filter (where status = 'active') as active_count,
    count(*) filter (where status = 'unsubscribed') as unsubscribed_count,
    count(*) filter (where status = 'bounced') as bounced_count,
    count(*) filter (where engagement_tier <> 'unread') as read_count,
    count(*) filter (where engagement_tier = 'engaged') as engaged_count,
    count(*) filter (where is_dormant) as dormant_count,
    {{ safe_rate("count(*) filter (where status = 'active')", 'count(*)') }} as active_rate,
    {{ safe_rate("count(*) filter (where engagement_tier = 'engaged')",
        "count(*) filter (where engagement_tier <> 'unread')") }} as engaged_rate
from {{ ref('contact_engagement') }}
join accounts using (account)
where registered_at is not null
group by all
