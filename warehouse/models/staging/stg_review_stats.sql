-- Current rows of source.review_stats; one row per period_on.
select
    account,
    period_on,
    good_count,
    bad_count,
    _first_seen_at as first_seen_at,
    _changed_at as changed_at
from {{ source('source', 'review_stats') }}
where _deleted_at is null
