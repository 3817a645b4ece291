{#
    A share from 0 to 1; NULL, never 0, when the whole is 0: "nobody was asked" is not "nobody answered". Also
    NULL if the part exceeds the whole: the service's counts then contradict each other (more clickers than
    mails), and other columns show them. #}
{% macro safe_rate(part, whole) -%}
    (case when ({{ whole }}) > 0 and ({{ part }}) between 0 and ({{ whole }})
        then ({{ part }})::double / ({{ whole }}) end)
{%- endmacro %}

{# Whether too few messages arrived for their rates to be meaningful. #}
{% macro is_small_sample(delivered) -%}
    coalesce({{ delivered }} < {{ var('rate_messages') }}, true)
{%- endmacro %}

{# A sum that is NULL when one of its parts is: an incomplete sum would look complete. `among`: the rows that
   count. #}
{% macro whole_sum(part, among='true') -%}
    case when count_if({{ among }} and {{ part }} is null) = 0
        then (sum({{ part }}) filter (where {{ among }}))::bigint end
{%- endmacro %}

{#
    Whether a percentage that the service reports contradicts the counts of the same response (observation 25),
    for a row of campaign_stats; NULL where no percentage can be compared. The percentage may be a share of sent
    or of delivered messages, so both must be known; it may be rounded or truncated to whole percents.
#}
{% macro is_percent_inconsistent(stats) -%}
    {%- set delivered = "(" ~ stats ~ ".opened_count + " ~ stats ~ ".unopened_count)" -%}
    {%- set sent = "(" ~ delivered ~ " + " ~ stats ~ ".bounced_count)" -%}
    list_bool_or([
        {%- for name in ["opened", "unopened", "bounced", "unsubscribed"] %}
        {%- set count, percent = stats ~ "." ~ name ~ "_count", stats ~ "." ~ name ~ "_percent" %}
        case when {{ sent }} is not null then least(abs({{ percent }} - {{ _percent(count, delivered) }}),
            abs({{ percent }} - {{ _percent(count, sent) }})) > 1 end
        {{- "," if not loop.last }}
        {%- endfor %}
    ])
{%- endmacro %}

{% macro _percent(count, whole) -%}
    (case when {{ whole }} > 0 then 100.0 * {{ count }} / {{ whole }} end)
{%- endmacro %}

{#
    A rate of metrics.yml over columns with its names. `columns`: the pattern of the names here, e.g.
    '{}_90d_count', 'messages.{}_count'; `over`: an aggregation, e.g. 'sum({})' for grouped rows. It only
    includes rows that know both parts; otherwise numerator and denominator would be of different rows. #}
{% macro rate(name, columns='{}_count', over='{}') -%}
    {%- set part, whole = _named(rate_parts()[name][0], columns), _named(rate_parts()[name][1], columns) -%}
    {%- if over != '{}' -%}
        {%- set known = 'case when (' ~ part ~ ') + (' ~ whole ~ ') is not null then ' -%}
        {{ safe_rate(over.replace('{}', known ~ part ~ ' end'), over.replace('{}', known ~ whole ~ ' end')) }}
    {%- else -%}
        {{ safe_rate(part, whole) }}
    {%- endif -%}
{%- endmacro %}

{% macro _named(expression, columns) -%}
    {{ modules.re.sub('(\w+)_count', columns.replace('{}', '\\1'), expression) }}
{%- endmacro %}
