-- Rows of source.contacts, deleted ones too; one row per list_id, contact_id.
select
    account,
    list_id,
    contact_id,
    email,
    email_normalized,
    status,
    status_code,
    registered_at,
    custom_fields,
    _first_seen_at as first_seen_at,
    _changed_at as changed_at,
    _deleted_at as deleted_at,
    _deleted_at is not null as is_deleted
from {{ source('source', 'contacts') }}
