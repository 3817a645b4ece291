{# The date in a time zone of a TIMESTAMPTZ. `zone`: a column or text, mostly accounts.timezone of int_accounts. #}
{% macro local_date(moment, zone) -%}
    (timezone({{ zone }}, {{ moment }})::date)
{%- endmacro %}
