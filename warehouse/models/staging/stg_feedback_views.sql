-- Current rows of source.feedback_views; one row per period_on.
select
    account,
    period_on,
    view_count,
    _first_seen_at as first_seen_at,
    _changed_at as changed_at
from {{ source('source', 'feedback_views') }}
where _deleted_at is null
