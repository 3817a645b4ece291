{# What the attribution marts tell of a touch, as a struct. #}
{% macro touch(relation) -%}
    {
        'touch': {{ relation }}.touch, 'touched_at': {{ relation }}.touched_at, 'campaign_id': {{ relation }}.campaign_id,
        'utm_source': {{ relation }}.utm_source, 'utm_medium': {{ relation }}.utm_medium, 'utm_campaign': {{ relation }}.utm_campaign
    }
{%- endmacro %}
