-- How often each goal was reached, and what led there; one row per goal, credited campaign and source.
with goals as (
    select account, goal_id, name, value, can_be_told from {{ ref('int_goals') }}
),

counted as (
    select
        account,
        goal_id,
        campaign_id,
        source,
        sum(first_credit)::bigint as first_touch_count,
        sum(last_credit)::bigint as last_touch_count,
        -- rounded, since the order of the sum decides the last digits
        round(sum(linear_credit), 9) as linear_touch_count
    from {{ ref('attribution') }}
    where outcome = 'goal' and (not is_landing)
    group by all
)

select
    account,
    goal_id,
    goals.name as goal_name,
    coalesce(counted.campaign_id::varchar, '(none)') as credited_to,
    coalesce(counted.source, '(none)') as source,
    counted.campaign_id,
    campaigns.subject,
    can_be_told,
    case when can_be_told then coalesce(first_touch_count, 0) end as first_touch_count,
    case when can_be_told then coalesce(last_touch_count, 0) end as last_touch_count,
    case when can_be_told then coalesce(linear_touch_count, 0) end as linear_touch_count,
    value as goal_value,
    (case when can_be_told then coalesce(first_touch_count, 0) * value end)::double as first_touch_value,
    (case when can_be_told then coalesce(last_touch_count, 0) * value end)::double as last_touch_value,
    (case when can_be_told then coalesce(linear_touch_count, 0) * value end)::double as linear_touch_value
from goals
left join counted using (account, goal_id)
left join {{ ref('stg_campaigns') }} as campaigns using (account, campaign_id)
