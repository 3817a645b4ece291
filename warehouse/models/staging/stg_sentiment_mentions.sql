-- Current rows of source.sentiment_mentions; one row per mention_key.
select
    account,
    mention_key,
    polarity,
    channel,
    reviewed_on,
    inquiry,
    _first_seen_at as first_seen_at,
    _changed_at as changed_at
from {{ source('source', 'sentiment_mentions') }}
where _deleted_at is null
