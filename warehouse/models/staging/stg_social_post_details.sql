-- Current rows of source.social_post_details; one row per post_id, network.
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
    _changed_at as changed_at
from {{ source('source', 'social_post_details') }}
where _deleted_at is null
