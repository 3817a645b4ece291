{#
    Every version of the rows of a `source` table, one row per key and `valid_from`; for incremental models
    that are never rebuilt.

    `_changed_at` shows which rows differ from their last version, so a night only joins keys and times, and
    writes changes. Each change writes two rows: the version that ended, with valid_to, and the new one.
    - valid_from: when a response first showed these values. For a row that was deleted before the models
    first ran: when it was first seen.
    - Between two builds only the last state is seen. A row that changed and was then deleted ends with the
    values from before the change.
    - A response older than the known version changes nothing.
#}
{% macro versions(table, key, values) -%}
    {%- set identity = ["account"] + key -%}
    {%- set columns = identity + values -%}
    with present as (
        select {{ columns | join(", ") }}, _first_seen_at, _changed_at, _deleted_at
        from {{ source('source', table) }}
    ),

    known as (
        {%- if is_incremental() %}
        select {{ identity | join(", ") }}, valid_from, valid_to, is_current from {{ this }}
        {%- else %}
        select {{ identity | join(", ") }}, _changed_at as valid_from, _changed_at as valid_to,
            false as is_current from present where false
        {%- endif %}
    ),

    compared as (
        select present.*, known.valid_from as known_from
        from present
        left join known on known.is_current {%- for name in identity %}
            and known.{{ name }} = present.{{ name }}{% endfor %}
    ),

    different as (
        select * from compared
        where
            case
                when _deleted_at is null then known_from is null or known_from < _changed_at
                else known_from < _deleted_at
            end
    ),

    -- deleted rows without a current version: unknown so far, or recorded long ago
    departed as (
        select compared.*, past.last_to
        from compared
        left join (
            select {{ identity | join(", ") }}, max(valid_to) as last_to from known where not is_current
                group by all
        ) as past using ({{ identity | join(", ") }})
        where compared._deleted_at is not null and compared.known_from is null
            and (past.last_to is null or past.last_to < compared._deleted_at)
    ),

    ended as (
        {%- if is_incremental() %}
        select
            {% for name in columns %}before.{{ name }}, {% endfor %}
            before.valid_from,
            coalesce(different._deleted_at, different._changed_at) as valid_to,
            false as is_current,
            case when different._deleted_at is null then 'changed' else 'deleted' end as ended_by
        from {{ this }} as before
        join different using ({{ identity | join(", ") }})
        where before.is_current
        {%- else %}
        select {{ columns | join(", ") }}, _changed_at as valid_from, _deleted_at as valid_to,
            false as is_current, 'deleted' as ended_by
        from present where false
        {%- endif %}
    ),

    begun as (
        select
            {{ columns | join(", ") }},
            _changed_at as valid_from,
            null::timestamptz as valid_to,
            true as is_current,
            null::varchar as ended_by
        from different
        where _deleted_at is null
    ),

    missed as (
        select
            {{ columns | join(", ") }},
            coalesce(greatest(last_to, _first_seen_at), _first_seen_at) as valid_from,
            _deleted_at as valid_to,
            false as is_current,
            'deleted' as ended_by
        from departed
    )

    select * from ended
    union all
    select * from begun
    union all
    select * from missed
{%- endmacro %}
