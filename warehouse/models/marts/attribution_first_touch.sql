-- What each visit and each redeemed coupon goes back to, by the first touch in the window; one row per outcome.
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
    coalesce(first_touch.touch, 'none') as touch,
    first_touch.touched_at as touched_at,
    first_touch.campaign_id as campaign_id,
    first_touch.utm_source as utm_source,
    first_touch.utm_medium as utm_medium,
    first_touch.utm_campaign as utm_campaign,
    date_diff('second', first_touch.touched_at, outcome_at) / 3600.0 as hours_since_touch
from {{ ref('int_attribution') }}
