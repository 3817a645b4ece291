-- Everything that is to be attributed, with the first and the last touch in the window before it; one row per outcome.
{% set window = "to_hours(" ~ env_var('MARKETING_ATTRIBUTION_HOURS', '120') ~ ")" %}
with accounts as (
    select account, timezone from {{ ref('int_accounts') }}
),

contacts as (
    select distinct account, contact_id, lower(trim(email)) as email from {{ ref('stg_contacts') }} where trim(email) <> ''
),

clicks as (
    -- numbered by age: the smallest and the largest number of a window are its first and last click
    select account, contact_id, message_key as touch_key, 'click' as touch, clicked_at as touched_at, campaign_id,
        null::varchar as utm_source, null::varchar as utm_medium, null::varchar as utm_campaign,
        row_number() over (order by clicked_at, message_key) as place
    from {{ ref('contact_campaign') }}
    where clicked_at is not null
),

visits as (
    select account, contact_id, visit_key, visited_at, utm_source, utm_medium, utm_campaign, link
    from {{ ref('stg_timeline_visits') }}
    where visited_at is not null
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

visit_touches as (
    select
        visits.account,
        visits.contact_id,
        visits.visit_key,
        min(clicks.place) as first_place,
        max(clicks.place) as last_place,
        count(*) as touch_count
    from visits
    join clicks
        on clicks.account = visits.account and clicks.contact_id = visits.contact_id
        and clicks.touched_at between visits.visited_at - {{ window }} and visits.visited_at
    group by all
),

-- of a click and the visit that it led to the click counts; a redemption may follow from what any contact with the address did
all_touches as (
    select * from clicks
    union all by name
    select account, contact_id, visit_key as touch_key, 'visit' as touch, visited_at as touched_at, utm_source, utm_medium, utm_campaign
    from visits
),

redemption_touches as (
    select
        redemptions.account,
        redemptions.coupon_id,
        arg_min({{ touch('all_touches') }}, (all_touches.touched_at, all_touches.touch <> 'click', all_touches.touch_key)) as first_touch,
        arg_max({{ touch('all_touches') }}, (all_touches.touched_at, all_touches.touch = 'click', all_touches.touch_key)) as last_touch,
        count(*) as touch_count
    from redemptions
    join contacts on contacts.account = redemptions.account and contacts.email = redemptions.email
    join all_touches
        on all_touches.account = contacts.account and all_touches.contact_id = contacts.contact_id
        and all_touches.touched_at between redemptions.begun_at - {{ window }} and redemptions.redeemed_at
    group by all
)

select
    visits.account, 'visit' as outcome, visits.contact_id || '/' || visit_key as outcome_key, visits.contact_id, null::varchar as email,
    visited_at as outcome_at, link, visits.utm_source, visits.utm_medium, visits.utm_campaign,
    case when first_click.place is not null then {{ touch('first_click') }} end as first_touch,
    case when last_click.place is not null then {{ touch('last_click') }} end as last_touch,
    coalesce(touch_count, 0) as touch_count
from visits
left join visit_touches using (account, contact_id, visit_key)
left join clicks as first_click on first_click.place = first_place
left join clicks as last_click on last_click.place = last_place
union all
select
    account, 'redemption', coupon_id::varchar, null, email, redeemed_at, null, null, null, null, first_touch, last_touch,
    coalesce(touch_count, 0)
from redemptions
left join redemption_touches using (account, coupon_id)
