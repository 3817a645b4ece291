-- Rows of source.review_stats, deleted ones too; one row per period_on.
select
    account,
    period_on,
    good_count,
    bad_count,
    _first_seen_at as first_seen_at,
    _changed_at as changed_at,
    _deleted_at as deleted_at,
    _deleted_at is not null as is_deleted
from {{ source('source', 'review_stats') }}
