select channel, kind, average_rating, average_rating_change_28d, served_review_count_before,
    served_review_count, review_count, review_count_28d, good_rate_28d,
    positive_rate_28d, last_review_at
from marts.reputation_overview where account = $account order by kind, review_count desc nulls last, channel
