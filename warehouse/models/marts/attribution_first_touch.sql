-- The first touch of each visit and each redeemed coupon, as attribution has it; one row per outcome. Deprecated.
{{ config(materialized='view') }}
select
    account,
    outcome,
    outcome_key,
    contact_id,
    email,
    outcome_at,
    link,
    visit_utm_source,
    visit_utm_medium,
    visit_utm_campaign,
    touch_count,
    touch,
    touched_at,
    campaign_id,
    utm_source,
    utm_medium,
    utm_campaign,
    hours_since_touch
from {{ ref('attribution') }}
where outcome <> 'goal' and first_credit = 1
