{#
    The last N days: N local days of the account, including the last one. Every `_Nd` column uses them.
    `last_on` is the account's today, or the last day that was read. Totals without a daily history are compared
    with the last observation that is at least N days older (`observed_before`).
#}
{% macro in_last_days(day, last_on, days) -%}
    ({{ day }} > {{ last_on }} - {{ days }} and {{ day }} <= {{ last_on }})
{%- endmacro %}

{# The first moment of the last N local days, for times that are too many to convert each into a date; the last
   moment is before `days_end`. #}
{% macro days_begin(last_on, days, zone) -%}
    {{ from_local("(" ~ last_on ~ " - " ~ (days - 1) ~ ")::timestamp", zone) }}
{%- endmacro %}

{# The first moment after the local day. #}
{% macro days_end(last_on, zone) -%}
    {{ from_local("(" ~ last_on ~ " + 1)::timestamp", zone) }}
{%- endmacro %}

{# The same as a window frame over an `order by` of days: this day and the ones before, N in all. #}
{% macro days_frame(days) -%}
    range between interval {{ days - 1 }} days preceding and current row
{%- endmacro %}

{% macro observed_before(observed_on, last_on, days) -%}
    ({{ observed_on }} <= {{ last_on }} - {{ days }})
{%- endmacro %}

{# Whether an event with this date of the service can have happened: not before 2000, when the service didn't
   exist, and not after `last_on`, usually the account's today. One wrong date must not stretch a table by
   years; data_coverage counts such dates. #}
{% macro is_plausible(day, last_on) -%}
    ({{ day }} between date '2000-01-01' and {{ last_on }})
{%- endmacro %}

{# The same for times that are too many to convert each into a date. #}
{% macro is_plausible_moment(moment, until_at) -%}
    ({{ moment }} >= timestamptz '2000-01-01 00:00+00' and {{ moment }} < {{ until_at }})
{%- endmacro %}
