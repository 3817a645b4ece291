-- Current rows of source.timeline_events; one row per contact_id, event_key.
select
    account,
    contact_id,
    event_key,
    key,
    snippet,
    occurred_at,
    details,
    _first_seen_at as first_seen_at,
    _changed_at as changed_at
from {{ source('source', 'timeline_events') }}
