"""Reviews, sentiment and reputation statistics."""

from __future__ import annotations

from collections.abc import Iterator

from assets.ask import Ask, Part
from assets.extract import source_asset
from marketing_api.operations import reputation
from warehouse import tables


@source_asset(tables.DIRECT_REVIEWS, is_daily=True)
def direct_reviews(ask: Ask) -> Iterator[Part]:
    """Private reviews left on the business's own feedback page."""
    yield from ask.days(reputation.DIRECT, filter="date")


@source_asset(tables.ONLINE_REVIEWS, tables.ONLINE_REVIEW_CHANNELS)
def online_reviews(ask: Ask) -> Iterator[Part]:
    """Public reviews and each channel's average rating; the service keeps only the latest reviews, the warehouse all."""
    yield ask.once(reputation.ONLINE, channels="all")


@source_asset(tables.SENTIMENT_MENTIONS, tables.SENTIMENT_TOTALS, is_daily=True)
def sentiment(ask: Ask) -> Iterator[Part]:
    """Mentions that the service judged positive, negative or neutral."""
    yield from ask.days(reputation.SENTIMENT, filter="all", channels="all")


@source_asset(tables.REVIEW_STATS, tables.SOCIAL_MEDIA_STATS, tables.FEEDBACK_VIEWS, is_daily=True)
def reputation_stats(ask: Ask) -> Iterator[Part]:
    """Daily counts of reviews, social mentions and views of the feedback page."""
    yield from ask.series(reputation.STATS, filter="all")
