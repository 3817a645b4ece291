select day_on, member_count, joined_count, left_count, joined_count - left_count as net_change, sent_change, opened_change,
    click_change, unsubscribed_change, good_count, bad_count, online_review_count, view_count, visit_count, mention_count,
    social_click_change
from marts.account_daily where account = $account order by day_on
