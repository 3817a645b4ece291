"""Social profiles, posts and short links."""

from __future__ import annotations

from collections.abc import Iterator

from assets.ask import Ask, Part
from assets.extract import source_asset
from marketing_api.operations import social
from warehouse import tables

#: The networks of which a single post can be asked.
_NETWORKS_WITH_POSTS = ("facebook", "twitter", "linkedin")


@source_asset(tables.SOCIAL_PROFILES)
def social_profiles(ask: Ask) -> Iterator[Part]:
    """Pages and profiles that are connected to the account."""
    yield ask.once(social.CHANNELS)


@source_asset(tables.SOCIAL_POSTS)
def social_posts(ask: Ask) -> Iterator[Part]:
    """Posts of the calendar, sent and scheduled."""
    yield from ask.days(social.CALENDAR, ahead=ask.settings.calendar_days_ahead, channels="all", includeposted=True, sort="asc")


@source_asset(tables.SOCIAL_POST_DETAILS, after=[social_posts])
def social_post_details(ask: Ask) -> Iterator[Part]:
    """Title, picture and profile of posts that are new or changed since they were asked."""
    posts = ask.known.posts_needing_detail(_NETWORKS_WITH_POSTS)
    yield from ask.each(social.GETPOST, ({"id": post_id, "channel": network} for post_id, network in posts))


@source_asset(tables.SOCIAL_LINKS, tables.SOCIAL_LINK_CLICKS)
def social_links(ask: Ask) -> Iterator[Part]:
    """Short links and how often each network's readers clicked them."""
    yield ask.once(social.STATS, channels="all", sort="asc")
