-- Current rows of source.list_fields; one row per list_id, field_id.
select
    account,
    list_id,
    field_id,
    label,
    _first_seen_at as first_seen_at,
    _changed_at as changed_at
from {{ source('source', 'list_fields') }}
where _deleted_at is null
