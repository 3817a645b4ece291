-- Rows of source.business, deleted ones too; one row per account.
select
    account,
    business_id,
    business_name,
    contact_name,
    phone_number,
    service_name,
    package,
    timezone,
    _first_seen_at as first_seen_at,
    _changed_at as changed_at,
    _deleted_at as deleted_at,
    _deleted_at is not null as is_deleted
from {{ source('source', 'business') }}
