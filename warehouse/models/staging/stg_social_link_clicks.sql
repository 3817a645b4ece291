-- Current rows of source.social_link_clicks; one row per link_id, network, observed_on.
select
    account,
    link_id,
    network,
    observed_on,
    click_count,
    _first_seen_at as first_seen_at,
    _changed_at as changed_at
from {{ source('source', 'social_link_clicks') }}
