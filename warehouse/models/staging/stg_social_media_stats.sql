-- Current rows of source.social_media_stats; one row per period_on, network.
select
    account,
    period_on,
    network,
    mention_count,
    _first_seen_at as first_seen_at,
    _changed_at as changed_at
from {{ source('source', 'social_media_stats') }}
where _deleted_at is null
