-- Rows of source.social_links, deleted ones too; one row per link_id.
select
    account,
    link_id,
    short_url,
    real_url,
    message,
    created_at,
    track_count,
    _first_seen_at as first_seen_at,
    _changed_at as changed_at,
    _deleted_at as deleted_at,
    _deleted_at is not null as is_deleted
from {{ source('source', 'social_links') }}
