-- of three months: people who wait longer have most likely been answered manually
select reviewed_at, days_since_review, email, phone, inquiry, engagement_tier, message_count, count(*) over () as waiting
from marts.reviews_waiting where account = $account and is_waiting and days_since_review < 91
order by reviewed_at desc limit 6
