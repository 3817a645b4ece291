-- Current rows of source.social_posts; one row per post_id, network.
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
    _changed_at as changed_at
from {{ source('source', 'social_posts') }}
where _deleted_at is null
