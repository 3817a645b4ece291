-- Rows of source.direct_reviews, deleted ones too; one row per review_id.
select
    account,
    review_id,
    email,
    email_normalized,
    phone,
    reviewed_at,
    inquiry,
    notes,
    rating,
    _first_seen_at as first_seen_at,
    _changed_at as changed_at,
    _deleted_at as deleted_at,
    _deleted_at is not null as is_deleted
from {{ source('source', 'direct_reviews') }}
