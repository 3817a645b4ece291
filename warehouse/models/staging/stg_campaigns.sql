-- Rows of source.campaigns, deleted ones too; one row per campaign_id.
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
    name,
    sent_at,
    delivered_count,
    failed_count,
    _first_seen_at as first_seen_at,
    _changed_at as changed_at,
    _deleted_at as deleted_at,
    _deleted_at is not null as is_deleted
from {{ source('source', 'campaigns') }}
