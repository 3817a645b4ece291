{# The date in a time zone of a TIMESTAMPTZ. `zone`: a column or text, mostly accounts.timezone of
   int_accounts. #}
{% macro local_date(moment, zone) -%}
    (timezone({{ zone }}, {{ moment }})::date)
{%- endmacro %}

{#
    The TIMESTAMPTZ of a TIMESTAMP on the clocks of a time zone. As in the loading (Python's rules), an hour
    that clocks show twice is the first of the two (DuckDB takes the second), and one that they skip is read
    by the clock before the change. #}
{% macro from_local(local, zone) -%}
    (
        timezone({{ zone }}, {{ local }})
        - case when timezone({{ zone }}, timezone({{ zone }}, {{ local }}) - interval 1 hour) = {{ local }}
            then interval 1 hour
            else interval 0 hour end
    )
{%- endmacro %}
