select channel, kind, average_rating, average_rating_change_28d, served_review_count_before,
    served_review_count, review_count, review_count_28d, good_rate_28d,
    positive_rate_28d, last_review_at
from marts.reputation_overview
-- the feedback page has a row even without a review
where account = $account and (average_rating is not null or review_count > 0
    or kind = 'feedback page' and exists (from marts.account_daily as days where days.account = $account and good_count + bad_count > 0))
order by kind, review_count desc nulls last, channel
