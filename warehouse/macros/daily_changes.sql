{#
    Totals as of each day of asking, turned into what was added since the day of asking before; one row per
    `keys` and observed_on.
    Columns: account, `keys`, observed_on, days_covered, and per measure its total (X_count) and X_change.

    - Rule for missing days: the change is attributed to the day on which it was seen, not spread: spreading
    would invent numbers. days_covered says over how many days it came about; 1 is a night like any other.
    - On the first day of asking there is no change (NULL): when it came about is not known. What appears
    later did not exist on the day of asking before, so all of it is change.
    - A change below 0 stays: the service corrected itself.

    `nights` tells the day of asking before of each account and observed_on, and of each `asked`, the keys
    that are asked one by one; without it an answer holds the account's whole relation.
#}
{% macro daily_changes(relation, keys, measures, nights=none, asked=[]) -%}
    with nights as (
        {%- if nights %}
        select account, {% for key in asked %}{{ key }}, {% endfor %}observed_on, night_before
            from {{ nights }}
        {%- else %}
        select account, observed_on,
            lag(observed_on) over (partition by account order by observed_on) as night_before
        from (select distinct account, observed_on from {{ relation }})
        {%- endif %}
    ),

    ordered as (
        select
            *,
            lag(observed_on) over by_key as seen_before
            {%- for measure in measures %},
            lag({{ measure }}) over by_key as {{ measure }}_before
            {%- endfor %}
        from {{ relation }}
        join nights using (account, {% for key in asked %}{{ key }}, {% endfor %}observed_on)
        window by_key as (partition by account, {{ keys | join(", ") }} order by observed_on)
    )

    select
        account,
        {%- for key in keys %}
        {{ key }},
        {%- endfor %}
        observed_on,
        (observed_on - coalesce(seen_before, night_before))::bigint as days_covered
        {%- for measure in measures %},
        {{ measure }},
        case
            when seen_before is not null then {{ measure }} - {{ measure }}_before
            when night_before is not null then {{ measure }}
        end::bigint as {{ measure | replace("_count", "") }}_change
        {%- endfor %}
    from ordered
{%- endmacro %}
