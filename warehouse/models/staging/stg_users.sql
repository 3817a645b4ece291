-- Current rows of source.users; one row per business_id, user_id.
select
    account,
    business_id,
    user_id,
    full_name,
    username,
    user_group,
    status,
    _first_seen_at as first_seen_at,
    _changed_at as changed_at
from {{ source('source', 'users') }}
where _deleted_at is null
