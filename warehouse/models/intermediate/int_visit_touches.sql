-- Visits to tracked pages with the first and the last click in the window before them; one row per visit.
-- Incremental by contact: one whose clicks and visits differ, in number or hash, from those that its rows were made of. Hashes rather
-- than times of change, since a click belongs to another campaign when campaigns change.
{{ config(
    materialized='incremental', incremental_strategy='delete+insert', unique_key=['account', 'contact_id'], on_schema_change='fail'
) }}
{% set window = "to_hours(" ~ var('attribution_hours') ~ ")" %}
with all_clicks as (
    select account, contact_id, message_key, clicked_at, campaign_id
    from {{ ref('contact_campaign') }}
    where clicked_at is not null
),

all_visits as (
    select account, contact_id, visit_key, visited_at, link, utm_source, utm_medium, utm_campaign
    from {{ ref('stg_timeline_visits') }}
    where visited_at is not null
),

stamps as (
    select account, contact_id, count(*) as touch_count, bit_xor(stamp) as touch_stamp
    from (
        select account, contact_id, true as is_visit, hash(all_visits) as stamp from all_visits
        union all
        select account, contact_id, false, hash(all_clicks) from all_clicks
    )
    group by account, contact_id
    having bool_or(is_visit)
),

changed as materialized (
    select * from stamps
    {%- if is_incremental() %}
    anti join {{ this }} as before
        on before.account = stamps.account and before.contact_id = stamps.contact_id
        and before._touch_count = stamps.touch_count and before._touch_stamp = stamps.touch_stamp
    {%- endif %}
),

visits as (
    select all_visits.*, changed.touch_count as _touch_count, changed.touch_stamp as _touch_stamp
    from all_visits
    join changed using (account, contact_id)
),

clicks as (
    -- numbered by age: the smallest and the largest number of a window are its first and last click
    select
        account, contact_id, 'click' as touch, clicked_at as touched_at, campaign_id,
        null::varchar as utm_source, null::varchar as utm_medium, null::varchar as utm_campaign,
        row_number() over (order by clicked_at, message_key) as place
    from all_clicks
    semi join changed using (account, contact_id)
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
)

select
    visits.account,
    visits.contact_id,
    visits.visit_key,
    visits.visited_at,
    visits.link,
    visits.utm_source,
    visits.utm_medium,
    visits.utm_campaign,
    case when first_click.place is not null then {{ touch('first_click') }} end as first_touch,
    case when last_click.place is not null then {{ touch('last_click') }} end as last_touch,
    coalesce(visit_touches.touch_count, 0) as touch_count,
    visits._touch_count,
    visits._touch_stamp
from visits
left join visit_touches using (account, contact_id, visit_key)
left join clicks as first_click on first_click.place = first_place
left join clicks as last_click on last_click.place = last_place
