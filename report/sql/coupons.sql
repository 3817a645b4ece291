select issued_month, issued_count, redeemed_count, redemption_rate, median_days_to_redeem
from marts.coupon_funnel where account = $account order by issued_month = 'unknown', issued_month desc
