-- Current rows of source.timeline_visits; one row per contact_id, visit_key.
select
    account,
    contact_id,
    visit_key,
    link,
    utm_campaign,
    utm_source,
    utm_medium,
    utm_term,
    utm_content,
    visited_at,
    _first_seen_at as first_seen_at,
    _changed_at as changed_at
from {{ source('source', 'timeline_visits') }}
