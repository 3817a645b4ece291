-- Current rows of source.social_links; one row per link_id.
select
    account,
    link_id,
    short_url,
    real_url,
    message,
    created_at,
    track_count,
    _first_seen_at as first_seen_at,
    _changed_at as changed_at
from {{ source('source', 'social_links') }}
where _deleted_at is null
