-- How each address reacts to messages; one row per address.
-- Rebuilt every night: recency changes with the day, so every row may change.
{%- set counts = ['message_count', 'sent_count', 'opened_count', 'clicked_count', 'sent_90d_count', 'opened_90d_count',
    'clicked_90d_count', 'sent_180d_count', 'sms_sent_count', 'sms_sent_90d_count', 'visit_count'] %}
{#- the figures from timelines are unknown until the timelines of all the address's contacts were read #}
{%- set is_read = 'bool_and(timeline_asked_at is not null) filter (where is_present)' %}
{%- set as_read = 'case when ' ~ is_read ~ ' then coalesce(sum({}), 0)::bigint end' %}
with accounts as (
    select
        account,
        timezone,
        today,
        {{ days_begin('today', 90, 'timezone') }} as since_90d,
        {{ days_begin('today', 180, 'timezone') }} as since_180d,
        {{ days_end('today', 'timezone') }} as until_at
    from {{ ref('int_accounts') }}
),

present as (
    select account, email_normalized as email, list_id, status
    from {{ current('stg_contacts') }}
    where email_normalized is not null
),

contacts as (
    select * from {{ ref('int_address_contacts') }}
),

lists as (
    select account, list_id, name from {{ ref('stg_lists') }}
),

-- Rates, frequency and dormancy only count e-mails for which it can be known whether they were opened. Other
-- messages are counted separately.
messages as (
    select
        contact_campaign.*,
        {{ can_tell_opening() }} as is_told,
        {{ can_tell_opening() }} and sent_at >= since_90d and sent_at < until_at as is_told_90d,
        channel = 'sms' as is_sms,
        since_90d,
        since_180d,
        until_at
    from {{ ref('contact_campaign') }} as contact_campaign
    join accounts using (account)
),

per_contact as (
    select
        account,
        contact_id,
        count(*) as message_count,
        count(*) filter (where is_told) as sent_count,
        count(*) filter (where is_told and is_opened) as opened_count,
        count(*) filter (where is_told and is_clicked) as clicked_count,
        count(*) filter (where is_told_90d) as sent_90d_count,
        count(*) filter (where is_told_90d and is_opened) as opened_90d_count,
        count(*) filter (where is_told_90d and is_clicked) as clicked_90d_count,
        count(*) filter (where is_told and sent_at >= since_180d and sent_at < until_at) as sent_180d_count,
        count(*) filter (where is_sms) as sms_sent_count,
        count(*) filter (where is_sms and sent_at >= since_90d and sent_at < until_at) as sms_sent_90d_count,
        count(*) filter (where is_sms and is_clicked) as sms_clicked_count,
        count(*) filter (where is_sms and is_clicked is null) as sms_untold_count,
        max(sent_at) filter (where {{ is_plausible_moment('sent_at', 'until_at') }}) as last_sent_at,
        max(coalesce(opened_at, sent_at)) filter (where is_opened
            and {{ is_plausible_moment('coalesce(opened_at, sent_at)', 'until_at') }}) as last_opened_at,
        max(coalesce(clicked_at, opened_at, sent_at)) filter (where is_clicked
            and {{ is_plausible_moment('coalesce(clicked_at, opened_at, sent_at)', 'until_at') }})
            as last_clicked_at
    from messages
    group by all
),

visits as (
    select account, contact_id, count(*) as visit_count,
        max(visited_at) filter (where {{ is_plausible_moment('visited_at', 'until_at') }}) as last_visited_at
    from {{ ref('stg_timeline_visits') }}
    join accounts using (account)
    group by all
),

coverage as (
    select account, contact_id, timeline_asked_at from {{ source('sync', 'contact_coverage') }}
),

coupons as (
    select account, email_normalized as email, count(*) as coupon_count,
        count(*) filter (where is_redeemed) as redeemed_count
    from {{ ref('stg_coupons') }}
    group by all
),

addresses as (
    select
        account,
        email,
        count(*) as contact_count,
        count(distinct list_id) as list_count,
        list_sort(list_distinct(list(coalesce(lists.name, 'list ' || list_id)))) as lists,
        case
            when bool_or(status = 'bounced') then 'bounced'
            when bool_or(status = 'active') then 'active'
            when bool_or(status = 'unconfirmed') then 'unconfirmed'
            when bool_or(status = 'unsubscribed') then 'unsubscribed'
            else coalesce(min(status), 'unknown')
        end as status
    from present
    left join lists using (account, list_id)
    group by all
),

told as (
    select
        account,
        email,
        case when {{ is_read }} then min(timeline_asked_at) filter (where is_present) end as timeline_as_of,
        case when coalesce(sum(sms_untold_count), 0) = 0 then {{ as_read.format('sms_clicked_count') }} end
            as sms_clicked_count,
{%- for name in counts %}
        {{ as_read.format(name) }} as {{ name }},
{%- endfor %}
{%- for name in ['last_sent_at', 'last_opened_at', 'last_clicked_at', 'last_visited_at'] %}
        case when {{ is_read }} then max({{ name }}) end as {{ name }}{{ '' if loop.last else ',' }}
{%- endfor %}
    from contacts
    left join per_contact using (account, contact_id)
    left join visits using (account, contact_id)
    left join coverage using (account, contact_id)
    group by all
),

recency as (
    select
        addresses.*,
        told.* exclude (account, email),
        greatest(last_opened_at, last_clicked_at, last_visited_at) as last_active_at,
        today - {{ local_date('last_active_at', 'timezone') }} as days_since_active,
        today - {{ local_date('last_clicked_at', 'timezone') }} as days_since_clicked,
        registered_at,
        today - {{ local_date('registered_at', 'timezone') }} as days_since_registered,
        coalesce(coupon_count, 0) as coupon_count,
        coalesce(redeemed_count, 0) as redeemed_count
    from addresses
    join told using (account, email)
    join accounts using (account)
    left join {{ ref('int_addresses') }} using (account, email)
    left join coupons using (account, email)
)

select
    account,
    email,
    contact_count,
    list_count,
    lists,
    status,
    registered_at,
    sent_count,
    opened_count,
    clicked_count,
    sms_sent_count,
    sms_clicked_count,
    message_count - sent_count - sms_sent_count as other_sent_count,
    {{ rate('open_of_sent_rate') }} as open_of_sent_rate,
    {{ rate('click_of_sent_rate') }} as click_of_sent_rate,
    sent_90d_count,
    opened_90d_count,
    clicked_90d_count,
    sms_sent_90d_count,
    {{ rate('open_of_sent_rate', '{}_90d_count') }} as open_of_sent_90d_rate,
    visit_count,
    last_sent_at,
    last_opened_at,
    last_clicked_at,
    last_visited_at,
    last_active_at,
    days_since_active,
    days_since_clicked,
    case
        when timeline_as_of is null then null
        when days_since_active is null then 'never'
        when days_since_active <= 30 then '30 days'
        when days_since_active <= 90 then '90 days'
        when days_since_active <= 365 then '1 year'
        else 'older'
    end as recency_tier,
    case
        when timeline_as_of is null then null
        when sent_90d_count = 0 then 'not mailed'
        when opened_90d_count = 0 then 'none'
        when opened_90d_count < 0.25 * sent_90d_count then 'rare'
        when opened_90d_count < 0.6 * sent_90d_count then 'regular'
        else 'keen'
    end as frequency_tier,
    status = 'active' and sent_180d_count >= 3 and coalesce(days_since_active > 180, true) as is_dormant,
{%- for name,
    days in [("engagement_tier", "days_since_active"), ("click_engagement_tier", "days_since_clicked")] %}
    case
        when status <> 'active' then 'unreachable'
        when timeline_as_of is null then 'unread'
        when coalesce({{ days }} <= 90, false) then 'engaged'
        when days_since_registered <= 30 then 'new'
        when sent_180d_count >= 3 and coalesce({{ days }} > 180, true) then 'dormant'
        when coalesce({{ days }} <= 365, false) then 'cooling'
        else 'quiet'
    end as {{ name }},
{%- endfor %}
    coupon_count,
    redeemed_count,
    timeline_as_of
from recency
