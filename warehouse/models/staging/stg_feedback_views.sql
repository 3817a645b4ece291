-- Rows of source.feedback_views, deleted ones too; one row per period_on.
select
    account,
    period_on,
    view_count,
    _first_seen_at as first_seen_at,
    _changed_at as changed_at,
    _deleted_at as deleted_at,
    _deleted_at is not null as is_deleted
from {{ source('source', 'feedback_views') }}
