-- How well messages arrive at each mail domain; one row per domain.
with addresses as (
    select *, split_part(email, '@', -1) as domain from {{ ref('contact_engagement') }}
    where email like '%_@_%'
),

accounts as (
    select account,
        {{ rate('open_of_sent_rate', '{}_90d_count', 'sum({})') }} as account_open_of_sent_90d_rate
    from addresses
    group by all
),

domains as (
    select
        account,
        domain,
        count(*) as address_count,
        count(*) filter (where status = 'active') as active_count,
        count(*) filter (where status = 'unconfirmed') as unconfirmed_count,
        count(*) filter (where status = 'unsubscribed') as unsubscribed_count,
        count(*) filter (where status = 'bounced') as bounced_count,
        sum(sent_count)::bigint as sent_count,
        sum(opened_count)::bigint as opened_count,
        sum(clicked_count)::bigint as clicked_count,
        sum(sent_90d_count)::bigint as sent_90d_count,
        sum(opened_90d_count)::bigint as opened_90d_count,
        max(last_opened_at) as last_opened_at
    from addresses
    group by all
)

select
    account,
    domain,
    address_count,
    active_count,
    unconfirmed_count,
    unsubscribed_count,
    bounced_count,
    address_count - active_count - unconfirmed_count - unsubscribed_count - bounced_count as other_count,
    {{ safe_rate('bounced_count', 'address_count') }} as bounced_address_rate,
    {{ safe_rate('unsubscribed_count', 'address_count') }} as unsubscribed_address_rate,
    sent_count,
    opened_count,
    clicked_count,
    {{ rate('open_of_sent_rate') }} as open_of_sent_rate,
    {{ rate('click_of_sent_rate') }} as click_of_sent_rate,
    sent_90d_count,
    opened_90d_count,
    {{ rate('open_of_sent_rate', '{}_90d_count') }} as open_of_sent_90d_rate,
    {{ rate('open_of_sent_rate', '{}_90d_count') }}
        / nullif(account_open_of_sent_90d_rate, 0) as relative_open_90d,
    last_opened_at,
    -- with so many messages, so few openings are the work of a filter rather than chance
    sent_90d_count >= 50 and opened_90d_count < 0.2 * account_open_of_sent_90d_rate
        * sent_90d_count as is_suspicious
from domains
join accounts using (account)
