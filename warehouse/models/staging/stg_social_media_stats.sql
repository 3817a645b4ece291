-- Rows of source.social_media_stats, deleted ones too; one row per period_on, network.
select
    account,
    period_on,
    network,
    mention_count,
    _first_seen_at as first_seen_at,
    _changed_at as changed_at,
    _deleted_at as deleted_at,
    _deleted_at is not null as is_deleted
from {{ source('source', 'social_media_stats') }}
