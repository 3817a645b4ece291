-- Current rows of source.audiences; one row per audience_id.
select
    account,
    audience_id,
    name,
    _first_seen_at as first_seen_at,
    _changed_at as changed_at
from {{ source('source', 'audiences') }}
where _deleted_at is null
