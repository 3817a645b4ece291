-- Coupons that were issued, and how many were redeemed; one row per month of issue.
-- The service does not report the day of issue. It is known, as exactly as the readings allow, if the coupon
-- appeared at an address whose coupons had been read before. Deleted coupons, and coupons of deleted contacts,
-- count as issued, too.
with accounts as (
    select account, timezone, today from {{ ref('int_accounts') }}
),

coupons as (
    select account, coupon_id, email_normalized as email, is_redeemed, first_seen_at,
        case when {{ is_plausible('redeemed_on', 'today') }} then redeemed_on end as redeemed_on
    from {{ ref('stg_coupons') }}
    join accounts using (account)
),

addresses as (
    select account, email_normalized as email, min(coupon_first_asked_at) as read_since
        from {{ source('sync', 'contact_coverage') }} group by all
),

issued as (
    select
        coupons.*,
        -- many responses are loaded together, and all of them get the time of the newest one
        case when first_seen_at > read_since + interval 12 hour
            then {{ local_date('first_seen_at', 'timezone') }} end as issued_on
    from coupons
    join accounts using (account)
    left join addresses using (account, email)
),

timed as (
    -- redeemed before the first reading that showed it: within the same night
    select *, case when is_redeemed and redeemed_on is not null
        then greatest(redeemed_on - issued_on, 0) end as days_to_redeem
    from issued
    where issued_on is not null
    union all by name
    select *, null as days_to_redeem from issued where issued_on is null
)

select
    account,
    coalesce(strftime(issued_on, '%Y-%m'), 'unknown') as issued_month,
    count(*) as issued_count,
    count(distinct email) as address_count,
    count(*) filter (where is_redeemed) as redeemed_count,
    {{ safe_rate('count(*) filter (where is_redeemed)', 'count(*)') }} as redemption_rate,
    case when min(issued_on) is not null then count(*)
        filter (where days_to_redeem <= 7) end as redeemed_within_7_days_count,
    case when min(issued_on) is not null then count(*)
        filter (where days_to_redeem <= 30) end as redeemed_within_30_days_count,
    median(days_to_redeem) as median_days_to_redeem,
    min(redeemed_on) as first_redeemed_on,
    max(redeemed_on) as last_redeemed_on
from timed
group by all
