-- Current rows of source.sentiment_totals; one row per from_on, to_on.
select
    account,
    from_on,
    to_on,
    positive_count,
    negative_count,
    _first_seen_at as first_seen_at,
    _changed_at as changed_at
from {{ source('source', 'sentiment_totals') }}
