"""What can be requested about reviews, feedback, sentiment and their statistics."""

from marketing_api.operation import Area
from marketing_api.records import reputation

AREA = Area(__file__)

DIRECT = AREA.filling("reputation/direct", reputation.direct_reviews, reputation.DirectReview)
ONLINE = AREA.filling("reputation/online", reputation.online_reviews, reputation.OnlineReview, reputation.OnlineReviewChannel)
SENTIMENT = AREA.filling("reputation/sentiment", reputation.sentiment, reputation.SentimentMention, reputation.SentimentTotals)
STATS = AREA.filling("reputation/stats", reputation.stats, reputation.ReviewStats, reputation.SocialMediaStats, reputation.FeedbackViews)
