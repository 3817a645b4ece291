-- The touches that led to each visit, redeemed coupon and reached goal; one row per outcome and touch.
with accounts as (
    select account, timezone from {{ ref('int_accounts') }}
),

touches as (
    select * from {{ ref('int_touches') }}
),

contacts as (
    select * from {{ ref('int_address_contacts') }}
),

visits as (
    select
        account, 'visit' as outcome, contact_id || '/' || visit_key as outcome_key, contact_id,
        visited_at as outcome_at, link,
        utm_source as visit_utm_source, utm_medium as visit_utm_medium, utm_campaign as visit_utm_campaign
    from {{ ref('stg_timeline_visits') }}
    where visited_at is not null
),

redemptions as (
    select
        account, 'redemption' as outcome, coupon_id::varchar as outcome_key, email_normalized as email,
        -- the service only reports the day, so the whole day counts
        {{ days_begin('redeemed_on', 1, 'timezone') }} as begun_at,
        {{ days_end('redeemed_on', 'timezone') }} - interval 1 microsecond as outcome_at
    from {{ ref('stg_coupons') }}
    join accounts using (account)
    where is_redeemed and redeemed_on is not null
),

goals as (
    select
        reached.account, 'goal' as outcome, goal_key as outcome_key, contact_id, email, goal_id,
        reached_at as outcome_at, link,
        utm_source as visit_utm_source, utm_medium as visit_utm_medium, utm_campaign as visit_utm_campaign,
        campaign_id,
        value::double as value
    from {{ ref('int_goals_reached') }} as reached
    join {{ ref('int_goals') }} using (account, goal_id)
),

-- by number, since texts are slow to compare
outcomes as materialized (
    select *, row_number() over () as number
    from (
        from visits
        union all by name
        from redemptions
        union all by name
        from goals
    )
),

-- a redemption or a goal may follow from the actions of any contact with the address, on any number of lists
outcome_contacts as (
    select number, outcomes.account, contacts.contact_id, coalesce(begun_at, outcome_at) as begun_at,
        outcome_at
    from outcomes
    join contacts using (account, email)
    union
    select number, account, contact_id, outcome_at, outcome_at from outcomes where outcome = 'goal'
),

led_to as (
    -- a visit reports the page it came from; the only other possible cause is a message
    select number, touches.*
    from outcomes
    join touches
        on touches.account = outcomes.account and touches.contact_id = outcomes.contact_id
        and touches.touched_at <= outcomes.outcome_at and touches.until_at >= outcomes.outcome_at
    where outcome = 'visit' and touches.touch = 'click'
    union all by name
    select number, touches.*
    from outcome_contacts
    join touches
        on touches.account = outcome_contacts.account and touches.contact_id = outcome_contacts.contact_id
        and touches.touched_at <= outcome_contacts.outcome_at
            and touches.until_at >= outcome_contacts.begun_at
    union all by name
    -- clicks are listed without a time
    select number, 'click' as touch, 'clickers' as touch_key, '(click)' as source, campaign_id,
        false as is_landing
    from outcomes
    where outcome = 'goal' and outcome_at is null
),

-- the time of these clicks is unknown: each may have led to any outcome after its message was sent
untimed as (
    select number, count(*) as untimed_click_count
    from (
        select number, account, contact_id, outcome_at from outcomes where outcome = 'visit'
        union all
        select number, account, contact_id, outcome_at from outcome_contacts
    )
    join {{ ref('contact_campaign') }} as messages using (account, contact_id)
    where messages.is_clicked and messages.clicked_at is null
        and coalesce(messages.sent_at <= outcome_at, true)
    group by number
),

-- if a click led to a visit, only the click counts
credited as (
    select
        * exclude (account, contact_id),
        row_number() over in_order as touch_number,
        count(*) over (in_order rows between unbounded preceding and unbounded following) as touch_count,
        count(*) filter (not is_landing)
            over (in_order rows between unbounded preceding and unbounded following) as sharing_count,
        count(*) filter (not is_landing)
            over (in_order rows between current row and unbounded following) as remaining_count
    from led_to
    window in_order as (partition by number order by touched_at, touch <> 'click', touch_key)
)

select
    account,
    outcome,
    outcome_key,
    coalesce(touch_number, 1) as touch_number,
    contact_id,
    email,
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
    credited.campaign_id,
    utm_source,
    utm_medium,
    utm_campaign,
    date_diff('second', touched_at, outcome_at) / 3600.0 as hours_since_touch,
    coalesce(is_landing, false) as is_landing,
    (coalesce(touch_number, 1) = 1)::double as first_credit,
    coalesce(remaining_count = 1 and not is_landing, true)::double as last_credit,
    case when is_landing then 0.0 else 1.0 / coalesce(sharing_count, 1) end::double as linear_credit,
    value,
    case when outcome_at is not null then coalesce(untimed_click_count, 0) end as untimed_click_count
from outcomes
left join credited using (number)
left join untimed using (number)
