-- Rows of source.social_posts, deleted ones too; one row per post_id, network.
select
    account,
    post_id,
    network,
    channel_type,
    channel_id,
    channel_name,
    scheduled_at,
    message,
    photo_thumb_url,
    photo_url,
    _first_seen_at as first_seen_at,
    _changed_at as changed_at,
    _deleted_at as deleted_at,
    _deleted_at is not null as is_deleted
from {{ source('source', 'social_posts') }}
