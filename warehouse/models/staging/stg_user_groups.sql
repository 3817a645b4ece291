-- Current rows of source.user_groups; one row per group_id.
select
    account,
    group_id,
    name,
    status,
    _first_seen_at as first_seen_at,
    _changed_at as changed_at
from {{ source('source', 'user_groups') }}
where _deleted_at is null
