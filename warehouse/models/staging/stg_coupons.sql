-- Current rows of source.coupons; one row per coupon_id.
select
    account,
    coupon_id,
    email,
    coupon_code,
    is_redeemed,
    redeemed_on,
    _first_seen_at as first_seen_at,
    _changed_at as changed_at
from {{ source('source', 'coupons') }}
where _deleted_at is null
