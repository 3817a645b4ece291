select redeemed_on as day_on, count(*) as redeemed
from source.coupons where account = $account and redeemed_on is not null and _deleted_at is null group by redeemed_on
