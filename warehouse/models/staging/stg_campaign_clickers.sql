-- Rows of source.campaign_clickers, deleted ones too; one row per campaign_id, url, email.
select
    account,
    campaign_id,
    url,
    email,
    email_normalized,
    click_count,
    _first_seen_at as first_seen_at,
    _changed_at as changed_at,
    _deleted_at as deleted_at,
    _deleted_at is not null as is_deleted
from {{ source('source', 'campaign_clickers') }}
