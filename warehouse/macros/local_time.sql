{# The date of a TIMESTAMPTZ in a time zone. `zone`: a column or text, usually accounts.timezone of
   int_accounts. #}
{% macro local_date(moment, zone) -%}
    (timezone({{ zone }}, {{ moment }})::date)
{%- endmacro %}

{#
    The TIMESTAMPTZ of a TIMESTAMP on the clocks of a time zone. As in loads (Python's rules), an hour that
    clocks show twice is the first of the two (DuckDB takes the second), and an hour that they skip is read
    by the clock before the change. #}
{% macro from_local(local, zone) -%}
    (
        timezone({{ zone }}, {{ local }})
        - case when timezone({{ zone }}, timezone({{ zone }}, {{ local }}) - interval 1 hour) = {{ local }}
            then interval 1 hour
            else interval 0 hour end
    )
{%- endmacro %}
