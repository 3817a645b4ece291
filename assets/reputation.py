"""Reviews, sentiment and reputation statistics."""

from assets.extract import source_asset
from assets.fetch import Batches, Fetcher
from marketing_api.operations import reputation
from warehouse import tables


@source_asset(tables.DIRECT_REVIEWS, is_daily=True)
def direct_reviews(fetch: Fetcher) -> Batches:
    """Private reviews left on the business's own feedback page."""
    yield from fetch.days(reputation.DIRECT, filter="date")


@source_asset(tables.ONLINE_REVIEWS, tables.ONLINE_REVIEW_CHANNELS)
def online_reviews(fetch: Fetcher) -> Batches:
    """Public reviews and each channel's average rating; the service keeps only the latest reviews, the warehouse all."""
    yield fetch.once(reputation.ONLINE, channels="all")


@source_asset(tables.SENTIMENT_MENTIONS, tables.SENTIMENT_TOTALS, is_daily=True)
def sentiment(fetch: Fetcher) -> Batches:
    """Mentions that the service judged positive, negative or neutral."""
    yield from fetch.days(reputation.SENTIMENT, filter="all", channels="all")


@source_asset(tables.REVIEW_STATS, tables.SOCIAL_MEDIA_STATS, tables.FEEDBACK_VIEWS, is_daily=True)
def reputation_stats(fetch: Fetcher) -> Batches:
    """Daily counts of reviews, social mentions and views of the feedback page."""
    yield from fetch.series(reputation.STATS, filter="all")
