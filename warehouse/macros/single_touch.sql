{# The touch with all of that credit, of visits and redeemed coupons alone, in the columns of the marts before
   attribution. #}
{% macro single_touch(credit) -%}
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
    where outcome <> 'goal' and {{ credit }} = 1
{%- endmacro %}
