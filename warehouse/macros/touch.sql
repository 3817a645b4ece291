{# What the attribution marts tell of a touch, as a struct. #}
{% macro touch(relation) -%}
    {
        'touch': {{ relation }}.touch, 'touched_at': {{ relation }}.touched_at, 'campaign_id': {{ relation }}.campaign_id,
        'utm_source': {{ relation }}.utm_source, 'utm_medium': {{ relation }}.utm_medium, 'utm_campaign': {{ relation }}.utm_campaign
    }
{%- endmacro %}

{#
    Every outcome with one of its touches; `which`: first_touch or last_touch. For views: each outcome stands in a table with both
    already, and what is published are tables.
#}
{% macro attribution(which) -%}
    with outcomes as (
        select
            account, 'visit' as outcome, contact_id || '/' || visit_key as outcome_key, contact_id, null::varchar as email,
            visited_at as outcome_at, link, utm_source, utm_medium, utm_campaign, touch_count, {{ which }} as touch
        from {{ ref('int_visit_touches') }}
        union all
        select account, 'redemption', coupon_id::varchar, null, email, redeemed_at, null, null, null, null, touch_count, {{ which }}
        from {{ ref('int_redemption_touches') }}
    )

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
        coalesce(touch.touch, 'none') as touch,
        touch.touched_at as touched_at,
        touch.campaign_id as campaign_id,
        touch.utm_source as utm_source,
        touch.utm_medium as utm_medium,
        touch.utm_campaign as utm_campaign,
        date_diff('second', touch.touched_at, outcome_at) / 3600.0 as hours_since_touch
    from outcomes
{%- endmacro %}
