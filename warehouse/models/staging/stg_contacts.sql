-- Current rows of source.contacts; one row per list_id, contact_id.
select
    account,
    list_id,
    contact_id,
    email,
    status,
    status_code,
    registered_at,
    custom_fields,
    _first_seen_at as first_seen_at,
    _changed_at as changed_at
from {{ source('source', 'contacts') }}
where _deleted_at is null
