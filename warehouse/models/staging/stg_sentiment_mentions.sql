-- Rows of source.sentiment_mentions, deleted ones too; one row per mention_key.
select
    account,
    mention_key,
    polarity,
    channel,
    reviewed_on,
    inquiry,
    _first_seen_at as first_seen_at,
    _changed_at as changed_at,
    _deleted_at as deleted_at,
    _deleted_at is not null as is_deleted
from {{ source('source', 'sentiment_mentions') }}
