-- What each visit, redeemed coupon and reached goal goes back to; one row per outcome and touch.
with accounts as (
    select account, timezone from {{ ref('int_accounts') }}
),

touches as (
    select * from {{ ref('int_touches') }}
),

contacts as (
    select distinct account, contact_id, lower(trim(email)) as email, deleted_at is null as is_present
    from {{ ref('stg_contacts') }}
    where trim(email) <> ''
),

visits as (
    select
        account, 'visit' as outcome, contact_id || '/' || visit_key as outcome_key, contact_id, visited_at as outcome_at, link,
        utm_source as visit_utm_source, utm_medium as visit_utm_medium, utm_campaign as visit_utm_campaign
    from {{ ref('stg_timeline_visits') }}
    where visited_at is not null
),

redemptions as (
    select
        account, 'redemption' as outcome, coupon_id::varchar as outcome_key, lower(trim(email)) as email,
        -- the service tells the day only: all of it counts
        timezone(timezone, redeemed_on::timestamp) as begun_at,
        timezone(timezone, (redeemed_on + 1)::timestamp) - interval 1 microsecond as outcome_at
    from {{ current('stg_coupons') }}
    join accounts using (account)
    where is_redeemed and redeemed_on is not null
),

goals as (
    select
        reached.account, 'goal' as outcome, goal_key as outcome_key, contact_id, email, goal_id, reached_at as outcome_at, link,
        utm_source as visit_utm_source, utm_medium as visit_utm_medium, utm_campaign as visit_utm_campaign, campaign_id,
        value::double as value
    from {{ ref('int_goals_reached') }} as reached
    join {{ ref('int_goals') }} using (account, goal_id)
),

outcomes as (
    from visits
    union all by name
    select * exclude (begun_at) from redemptions
    union all by name
    select * exclude (campaign_id) from goals
),

-- these may follow from what any contact with the address did, on however many lists that is
outcome_contacts as (
    select redemptions.account, outcome, outcome_key, contact_id, begun_at, outcome_at
    from redemptions
    join contacts using (account, email)
    where is_present
    union
    select goals.account, outcome, outcome_key, contacts.contact_id, outcome_at, outcome_at
    from goals
    join contacts using (account, email)
    where outcome_at is not null
    union
    select account, outcome, outcome_key, contact_id, outcome_at, outcome_at from goals where outcome_at is not null
),

led_to as (
    -- a visit says itself from which page it came: what can have led to it beside that is a message
    select visits.outcome, visits.outcome_key, touches.*
    from visits
    join touches
        on touches.account = visits.account and touches.contact_id = visits.contact_id
        and touches.touched_at <= visits.outcome_at and touches.until_at >= visits.outcome_at
    where touches.touch = 'click'
    union all by name
    select others.outcome, others.outcome_key, touches.*
    from outcome_contacts as others
    join touches
        on touches.account = others.account and touches.contact_id = others.contact_id
        and touches.touched_at <= others.outcome_at and touches.until_at >= others.begun_at
    union all by name
    -- clicks are listed without a time
    select account, outcome, outcome_key, contact_id, 'click' as touch, 'clickers' as touch_key, '(click)' as source, campaign_id
    from goals
    where outcome_at is null
),

-- of a click and the visit that it led to the click counts
placed as (
    select
        *,
        row_number() over (first_to_last order by touched_at, touch <> 'click', touch_key) as touch_number,
        count(*) over (first_to_last) as touch_count,
        touch = 'visit' and bool_or(touch = 'click') over (partition by account, outcome, outcome_key, contact_id, touched_at) as is_landing
    from led_to
    window first_to_last as (partition by account, outcome, outcome_key)
),

-- the last one is not the first from behind: of a click and a visit of one moment the click is both
credited as (
    select
        *,
        row_number() over (by_outcome order by touched_at desc, touch = 'click' desc, touch_key desc) = 1 as is_last,
        count(*) filter (where not is_landing) over (by_outcome) as sharing_count
    from placed
    window by_outcome as (partition by account, outcome, outcome_key)
)

select
    account,
    outcome,
    outcome_key,
    coalesce(touch_number, 1) as touch_number,
    outcomes.contact_id,
    outcomes.email,
    goal_id,
    outcome_at,
    link,
    visit_utm_source,
    visit_utm_medium,
    visit_utm_campaign,
    coalesce(touch_count, 0) as touch_count,
    coalesce(touch, 'none') as touch,
    touch_key,
    coalesce(credited.source, '(none)') as source,
    channel,
    touched_at,
    campaign_id,
    utm_source,
    utm_medium,
    utm_campaign,
    date_diff('second', touched_at, outcome_at) / 3600.0 as hours_since_touch,
    coalesce(is_landing, false) as is_landing,
    (coalesce(touch_number, 1) = 1)::double as first_credit,
    coalesce(is_last, true)::double as last_credit,
    case when is_landing then 0.0 else 1.0 / coalesce(sharing_count, 1) end::double as linear_credit,
    value
from outcomes
left join credited using (account, outcome, outcome_key)
