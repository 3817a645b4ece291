-- Rows of source.coupons, deleted ones too; one row per coupon_id.
select
    account,
    coupon_id,
    email,
    email_normalized,
    coupon_code,
    is_redeemed,
    redeemed_on,
    _first_seen_at as first_seen_at,
    _changed_at as changed_at,
    _deleted_at as deleted_at,
    _deleted_at is not null as is_deleted
from {{ source('source', 'coupons') }}
