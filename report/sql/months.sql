select begins_on, is_over, sent_count, opened_count, open_rate, click_rate, joined_count,
    online_review_count, average_rating, rating_count, redeemed_count
from marts.period_summary where account = $account and period = 'month' order by begins_on desc limit 13
