-- When addresses began to react, were lost, and came back, and the message before that; one row per address and
-- transition.
with accounts as (
    select account, today from {{ ref('int_accounts') }}
),

addresses as (
    select distinct account, email_normalized as email, hash(email_normalized) as address
    from {{ ref('stg_contacts') }}
    where email_normalized is not null
),

transitions as (
    select * from {{ ref('int_lifecycle') }} where transition is not null
)

select
    account,
    email,
    row_number() over by_address as transition_number,
    transition,
    day_on,
    coalesce(is_day_known, true) as is_day_known,
    lead(day_on) over by_address is null as is_last,
    reaction,
    day_on - before_on as days_since_active,
    case transition
        when 'at risk' then least(until_on, today) - day_on
        when 'won back' then day_on - before_on - 91
    end as days_at_risk,
    messages_since_active_count,
    message_channel,
    campaign_id,
    subject,
    automation,
    message_sent_at
from transitions
join addresses using (account, address)
join accounts using (account)
-- the intermediate model also has future days
where day_on <= today
window by_address as (
    partition by account, address order by day_on,
    list_position(['at risk', 'dormant', 'unsubscribed', 'bounced'], transition) nulls first
)
