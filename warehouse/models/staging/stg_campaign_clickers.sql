-- Current rows of source.campaign_clickers; one row per campaign_id, url, email.
select
    account,
    campaign_id,
    url,
    email,
    click_count,
    _first_seen_at as first_seen_at,
    _changed_at as changed_at
from {{ source('source', 'campaign_clickers') }}
where _deleted_at is null
