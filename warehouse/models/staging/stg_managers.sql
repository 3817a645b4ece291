-- Current rows of source.managers; one row per manager_id.
select
    account,
    manager_id,
    full_name,
    email,
    status,
    _first_seen_at as first_seen_at,
    _changed_at as changed_at
from {{ source('source', 'managers') }}
where _deleted_at is null
