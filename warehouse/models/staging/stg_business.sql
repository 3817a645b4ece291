-- Current rows of source.business; one row per account.
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
    _changed_at as changed_at
from {{ source('source', 'business') }}
where _deleted_at is null
