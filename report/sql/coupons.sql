-- `begins_on` is null for coupons of unknown month
select try_strptime(issued_month, '%Y-%m')::date as begins_on, issued_count, redeemed_count, redemption_rate, median_days_to_redeem
from marts.coupon_funnel where account = $account order by begins_on desc nulls last
