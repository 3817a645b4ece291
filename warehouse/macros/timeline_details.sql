{#
    One detail of a timeline entry. Details are a list of {key, label, value}. The keys depend on the entry, and
    values may be text or numbers (observation 22). `entry` has two lists: keys and texts. #}
{% macro detail(entry, key) -%}
    {{ entry }}.texts[list_position({{ entry }}.keys, '{{ key }}')]
{%- endmacro %}

{# Both lists of a JSON column. #}
{% macro keys_and_texts(details) -%}
    {'keys': json_extract_string({{ details }}, '$[*].key'),
        'texts': json_extract_string({{ details }}, '$[*].value')}
{%- endmacro %}

{# Whether a detail has a value: "N/A", "-", 0, empty, a date of zeros and PHP's forms of it (30 November of the
   year -1) mean that there is none. #}
{% macro is_told(text) -%}
    coalesce(lower(trim({{ text }})) not in ('', '-', 'n/a', 'na', 'null', 'none', '0', 'false', '[]', '{}')
        and left({{ text }}, 10) not in ('0000-00-00', '00/00/0000', '00-00-0000', '-0001-11-3', '11/30/-000'),
        false)
{%- endmacro %}

{#
    A TIMESTAMPTZ from any format that the service uses for times (observation 21), by the rules of
    `marketing_api.records.values.read_moment`; NULL if there is none or it can't be read. Local times are in
    `zone`. A 24-hour time with PM stays a 24-hour time. The format of the samples is tried first, since
    millions of them are read. #}
{% macro moment(text, zone) -%}
    case
        when ltrim({{ text }})[1] between '0' and '9' then coalesce(
            case when {{ text }}[5] = '-'
                then {{ from_local("try_strptime(" ~ text ~ ", '%Y-%m-%d %I:%M %p')", zone) }} end,
            case when {{ text }}[-11] = '/'
                then {{ from_local("try_strptime(" ~ text ~ ", '%m/%d/%Y %H:%M')", zone) }} end,
            case
                when regexp_full_match(trim({{ text }}), '\d{9,10}(\.\d{1,9})?')
                    and {{ text }}::double between 100000000 and 4133980799.9
                    then to_timestamp({{ text }}::double)
            end,
            {{ _moment_by_parts(text, zone) }}
        )
    end
{%- endmacro %}

{% macro _moment_by_parts(text, zone) -%}
    list_transform(
        [regexp_extract(
            trim({{ text }}),
            '^(?:(\d{4})-(\d{1,2})-(\d{1,2})|(\d{1,2})/(\d{1,2})/(\d{4})|(\d{1,2})-(\d{1,2})-(\d{4}))'
            || '(?:(?: +|T)(\d{1,2}):(\d{2})(?::([0-5]\d(?:\.\d{1,6})?)\d{0,3})? *([AaPp][Mm])? *(Z|[+-](?:0\d|1[0-3]):?[0-5]\d|[+-]14:?00)?)?$',
            ['y', 'm', 'd', 'm2', 'd2', 'y2', 'd3', 'm3', 'y3', 'hour', 'minute', 'second', 'half', 'away']
        )],
        lambda part: list_transform(
            [try(make_timestamp(
                (part.y || part.y2 || part.y3)::bigint, (part.m || part.m2 || part.m3)::bigint,
                    (part.d || part.d2 || part.d3)::bigint,
                case
                    when part.hour = '' then 0
                    when part.hour::int > 23 then null
                    when part.half = '' then part.hour::int
                    when part.hour::int not between 1 and 12
                        then case when (part.hour::int > 12) = (lower(part.half) = 'pm')
                            then part.hour::int end
                    else part.hour::int % 12 + case when lower(part.half) = 'pm' then 12 else 0 end
                end::bigint,
                coalesce(try_cast(part.minute as bigint), 0), coalesce(try_cast(part.second as double), 0)
            ))],
            lambda local: case
                when part.away = '' then {{ from_local('local', zone) }}
                when part.away = 'Z' then timezone('UTC', local)
                else timezone('UTC', local) - (case when part.away[1] = '-' then -1 else 1 end)
                    * (to_hours(part.away[2:3]::int) + to_minutes(right(part.away, 2)::int))
            end
        )[1]
    )[1]
{%- endmacro %}
