{#
    Turns the totals of each observed_on into the growth since the observed_on before; one row per `keys` and
    observed_on.
    Columns: account, `keys`, observed_on, days_covered, and per measure its total (X_count) and X_change.

    - Rule for missing days: the change counts on the day that showed it. It is not spread over days, since
    that would invent numbers. days_covered is the number of days of the change; 1 is an ordinary night.
    - On the first observed_on the change is NULL, since its days are unknown. A row that appears later did not
    exist on the observed_on before, so its whole total is change.
    - A change below 0 stays: the service corrected itself.

    `nights`: a relation with the observed_on before, by account, observed_on and the columns `asked`, which
    are the keys that are requested one by one. Without it, a response holds the account's whole relation.
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
