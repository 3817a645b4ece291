"""What can be requested about reviews, feedback, sentiment and their statistics."""

from marketing_api.operation import choice, date, read
from marketing_api.records import reputation

REVIEW_CHANNELS = ("all", "yelp", "tripadvisor", "citysearch", "foursquare", "googleplaces", "zagat", "menupage", "opentable")

DIRECT = read(
    "reputation/direct",
    "Private reviews left on the business's own feedback page.",
    choice("filter", "today", "lastweek", "lastmonth", "date"),
    date("from", "Takes effect only when `filter` is `date`."),
    date("to", "Takes effect only when `filter` is `date`."),
    entries_at="reviews",
    records=(reputation.DirectReview,),
    rows=reputation.direct_reviews,
)

ONLINE = read(
    "reputation/online",
    "Public reviews by channel, with each channel's average rating.",
    choice("channels", *REVIEW_CHANNELS, many=True),
    entries_at="reviews",
    records=(reputation.OnlineReview, reputation.OnlineReviewChannel),
    rows=reputation.online_reviews,
)

SENTIMENT = read(
    "reputation/sentiment",
    "Mentions by polarity, and how many there are of each.",
    choice("filter", "all", "positive", "negative", "neutral", many=True),
    choice("channels", *REVIEW_CHANNELS, many=True),
    date("from"),
    date("to"),
    entries_at="sentiment",
    records=(reputation.SentimentMention, reputation.SentimentTotals),
    rows=reputation.sentiment,
)

STATS = read(
    "reputation/stats",
    "Reviews, social mentions and views of the feedback page per period.",
    choice("filter", "all", "reviews", "socialmedia", "feedbackhub"),
    date("from", required=True),
    date("to", required=True),
    at="stats",
    records=(reputation.ReviewStats, reputation.SocialMediaStats, reputation.FeedbackViews),
    rows=reputation.stats,
)
