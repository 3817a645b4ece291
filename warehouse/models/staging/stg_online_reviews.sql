-- Current rows of source.online_reviews; one row per review_key.
select
    account,
    review_key,
    channel,
    username,
    reviewed_at,
    inquiry,
    rating,
    rating_raw,
    source_url,
    _first_seen_at as first_seen_at,
    _changed_at as changed_at
from {{ source('source', 'online_reviews') }}
