-- Current rows of source.direct_reviews; one row per review_id.
select
    account,
    review_id,
    email,
    phone,
    reviewed_at,
    inquiry,
    notes,
    rating,
    _first_seen_at as first_seen_at,
    _changed_at as changed_at
from {{ source('source', 'direct_reviews') }}
where _deleted_at is null
