-- Current rows of source.timeline_automations; one row per contact_id, automation_key.
select
    account,
    contact_id,
    automation_key,
    name,
    type,
    triggered_at,
    details,
    _first_seen_at as first_seen_at,
    _changed_at as changed_at
from {{ source('source', 'timeline_automations') }}
