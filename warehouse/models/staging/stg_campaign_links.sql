-- Current rows of source.campaign_links; one row per campaign_id, url, observed_on.
select
    account,
    campaign_id,
    url,
    observed_on,
    message,
    clicker_count,
    click_count,
    _first_seen_at as first_seen_at,
    _changed_at as changed_at
from {{ source('source', 'campaign_links') }}
