-- What may have led to an outcome: clicks on messages, and visits to tracked pages that name a source or
-- medium; one row per touch.
-- The windows: hours for all channels (`120`), or by channel (`email=120,visit=24`). A channel that is not
-- named has 120.
with settings as (
    select
        case when contains(part, '=') then lower(trim(split_part(part, '=', 1))) else 'all' end as channel,
        trim(split_part(part, '=', -1))::integer as hours
    from (select unnest(string_split({{ text_of(var('attribution_hours')) }}, ',')) as part)
),

windows as (
    select map_from_entries(list((channel, hours))) as hours
    from (select channel, max(hours) as hours from settings group by channel)
),

clicks as (
    select
        account, contact_id, message_key, channel, campaign_id, clicked_at,
        clicked_at + to_hours(coalesce(hours[channel], hours['all'], 120)) as until_at
    from {{ ref('contact_campaign') }}, windows
    where clicked_at is not null
),

visits as (
    select
        account, contact_id, visit_key, visited_at, utm_source, utm_medium, utm_campaign,
        nullif(lower(trim(utm_source)), '') as source,
        nullif(lower(trim(utm_medium)), '') as medium
    from {{ ref('stg_timeline_visits') }}
    where visited_at is not null and coalesce(source, medium) is not null
),

-- a visit at the moment of a click counts for as long as the click
landings as (
    select account, contact_id, clicked_at, max(until_at) as until_at from clicks group by all
)

select
    account,
    contact_id,
    'click' as touch,
    message_key as touch_key,
    '(click)' as source,
    channel,
    campaign_id,
    null::varchar as utm_source,
    null::varchar as utm_medium,
    null::varchar as utm_campaign,
    clicked_at as touched_at,
    until_at,
    false as is_landing
from clicks
union all
select
    visits.account,
    visits.contact_id,
    'visit',
    visit_key,
    coalesce(source, medium),
    null,
    null,
    utm_source,
    utm_medium,
    utm_campaign,
    visited_at,
    coalesce(until_at,
        visited_at + to_hours(coalesce(hours[source], hours[medium], hours['visit'], hours['all'], 120))),
    until_at is not null
from visits
cross join windows
left join landings
    on landings.account = visits.account and landings.contact_id = visits.contact_id
        and landings.clicked_at = visits.visited_at
