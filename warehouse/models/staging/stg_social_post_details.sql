-- Rows of source.social_post_details, deleted ones too; one row per post_id, network.
select
    account,
    post_id,
    network,
    title,
    posted_at,
    uid,
    type,
    image_url,
    profile,
    _first_seen_at as first_seen_at,
    _changed_at as changed_at,
    _deleted_at as deleted_at,
    _deleted_at is not null as is_deleted
from {{ source('source', 'social_post_details') }}
