-- Current rows of source.campaigns; one row per campaign_id.
select
    account,
    campaign_id,
    status,
    type,
    subject,
    message,
    reply_to,
    from_email,
    from_name,
    created_at,
    _first_seen_at as first_seen_at,
    _changed_at as changed_at
from {{ source('source', 'campaigns') }}
where _deleted_at is null
