-- Current rows of source.online_review_channels; one row per channel, observed_on.
select
    account,
    channel,
    observed_on,
    average_rating,
    review_count,
    _first_seen_at as first_seen_at,
    _changed_at as changed_at
from {{ source('source', 'online_review_channels') }}
