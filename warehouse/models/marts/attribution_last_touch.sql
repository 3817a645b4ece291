-- What each visit and each redeemed coupon goes back to, by the last touch in the window; one row per outcome.
select
    account,
    outcome,
    outcome_key,
    contact_id,
    email,
    outcome_at,
    link,
    utm_source as visit_utm_source,
    utm_medium as visit_utm_medium,
    utm_campaign as visit_utm_campaign,
    touch_count,
    coalesce(last_touch.touch, 'none') as touch,
    last_touch.touched_at as touched_at,
    last_touch.campaign_id as campaign_id,
    last_touch.utm_source as utm_source,
    last_touch.utm_medium as utm_medium,
    last_touch.utm_campaign as utm_campaign,
    date_diff('second', last_touch.touched_at, outcome_at) / 3600.0 as hours_since_touch
from {{ ref('int_attribution') }}
