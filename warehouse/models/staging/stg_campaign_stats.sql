-- Current rows of source.campaign_stats; one row per campaign_id, observed_on.
select
    account,
    campaign_id,
    observed_on,
    opened_count,
    unopened_count,
    bounced_count,
    unsubscribed_count,
    opened_percent,
    unopened_percent,
    bounced_percent,
    unsubscribed_percent,
    _first_seen_at as first_seen_at,
    _changed_at as changed_at
from {{ source('source', 'campaign_stats') }}
