-- Redeemed coupons with the first and the last touch in the window before them; one row per coupon.
{% set window = "to_hours(" ~ var('attribution_hours') ~ ")" %}
with accounts as (
    select account, timezone from {{ ref('int_accounts') }}
),

redemptions as (
    select
        account, coupon_id, lower(trim(email)) as email,
        -- the service tells the day only: all of it counts
        timezone(timezone, redeemed_on::timestamp) as begun_at,
        timezone(timezone, (redeemed_on + 1)::timestamp) - interval 1 microsecond as redeemed_at
    from {{ ref('stg_coupons') }}
    join accounts using (account)
    where is_redeemed and redeemed_on is not null
),

-- a redemption may follow from what any contact with the address did, on however many lists that is
people as (
    select distinct redemptions.account, redemptions.coupon_id, redemptions.begun_at, redemptions.redeemed_at, contacts.contact_id
    from {{ ref('stg_contacts') }} as contacts
    join redemptions on redemptions.account = contacts.account and redemptions.email = lower(trim(contacts.email))
    where trim(contacts.email) <> ''
),

all_touches as (
    select
        account, contact_id, message_key as touch_key, 'click' as touch, clicked_at as touched_at, campaign_id,
        null::varchar as utm_source, null::varchar as utm_medium, null::varchar as utm_campaign
    from {{ ref('contact_campaign') }}
    where clicked_at is not null
    union all by name
    select account, contact_id, visit_key as touch_key, 'visit' as touch, visited_at as touched_at, utm_source, utm_medium, utm_campaign
    from {{ ref('stg_timeline_visits') }}
    where visited_at is not null
),

-- of a click and the visit that it led to the click counts
redemption_touches as (
    select
        people.account,
        people.coupon_id,
        arg_min({{ touch('all_touches') }}, (all_touches.touched_at, all_touches.touch <> 'click', all_touches.touch_key)) as first_touch,
        arg_max({{ touch('all_touches') }}, (all_touches.touched_at, all_touches.touch = 'click', all_touches.touch_key)) as last_touch,
        count(*) as touch_count
    from people
    join all_touches
        on all_touches.account = people.account and all_touches.contact_id = people.contact_id
        and all_touches.touched_at between people.begun_at - {{ window }} and people.redeemed_at
    group by all
)

select account, coupon_id, email, redeemed_at, first_touch, last_touch, coalesce(touch_count, 0) as touch_count
from redemptions
left join redemption_touches using (account, coupon_id)
