{# Written by `make docs`; change warehouse/models/metrics.yml. Rate → numerator and denominator. #}
{% macro rate_parts() -%}
    {{ return({
        'open_rate': ['opened_count', 'delivered_count'],
        'click_rate': ['clicker_count', 'delivered_count'],
        'click_to_open_rate': ['clicker_count', 'opened_count'],
        'bounce_rate': ['bounced_count', 'sent_count'],
        'unsubscribe_rate': ['unsubscribed_count', 'delivered_count'],
        'open_of_sent_rate': ['opened_count', 'sent_count'],
        'click_of_sent_rate': ['clicked_count', 'sent_count'],
        'good_rate': ['good_count', 'good_count + bad_count'],
        'positive_rate': ['positive_count', 'positive_count + negative_count'],
    }) }}
{%- endmacro %}
