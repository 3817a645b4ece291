{#
    The last N days: N local days of the account, the last one included. Every `_Nd` column is about them;
    `last_on` is the account's today, or the last day that was read. Totals that are only observed are
    compared over N days instead: with the last observation that is at least N days older (`observed_before`).
#}
{% macro in_last_days(day, last_on, days) -%}
    ({{ day }} > {{ last_on }} - {{ days }} and {{ day }} <= {{ last_on }})
{%- endmacro %}

{# The first moment of the last N local days, for moments that are too many to turn each into a date: from
   here on, and before `days_end`. #}
{% macro days_begin(last_on, days, zone) -%}
    timezone({{ zone }}, ({{ last_on }} - {{ days - 1 }})::timestamp)
{%- endmacro %}

{# The first moment behind the local day. #}
{% macro days_end(last_on, zone) -%}
    timezone({{ zone }}, ({{ last_on }} + 1)::timestamp)
{%- endmacro %}

{# The same as a window frame over an `order by` of days: this day and those before, N in all. #}
{% macro days_frame(days) -%}
    range between interval {{ days - 1 }} days preceding and current row
{%- endmacro %}

{% macro observed_before(observed_on, last_on, days) -%}
    ({{ observed_on }} <= {{ last_on }} - {{ days }})
{%- endmacro %}

{# Whether what the service dates so can have happened: not before 2000, when there was no such service, and
   not after `last_on`, mostly the account's today. One wrong date must not stretch a table by years;
   data_coverage counts such dates. #}
{% macro is_plausible(day, last_on) -%}
    ({{ day }} between date '2000-01-01' and {{ last_on }})
{%- endmacro %}

{# The same of moments that are too many to turn each into a date. #}
{% macro is_plausible_moment(moment, until_at) -%}
    ({{ moment }} >= timestamptz '2000-01-01 00:00+00' and {{ moment }} < {{ until_at }})
{%- endmacro %}
