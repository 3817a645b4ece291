"""Social profiles, posts and short links."""

from assets.extract import source_asset
from assets.fetch import Batches, Fetcher
from marketing_api.operations import social
from warehouse import tables

#: The networks of which a single post can be fetched.
_NETWORKS_WITH_POSTS = ("facebook", "twitter", "linkedin")


@source_asset(tables.SOCIAL_PROFILES)
def social_profiles(fetch: Fetcher) -> Batches:
    """Pages and profiles that are connected to the account."""
    yield fetch.once(social.CHANNELS)


@source_asset(tables.SOCIAL_POSTS)
def social_posts(fetch: Fetcher) -> Batches:
    """Posts of the calendar, sent and scheduled."""
    yield from fetch.days(social.CALENDAR, ahead=fetch.settings.calendar_days_ahead, channels="all", includeposted=True, sort="asc")


@source_asset(tables.SOCIAL_POST_DETAILS, after=[social_posts])
def social_post_details(fetch: Fetcher) -> Batches:
    """Title, picture and profile of posts that are new or changed since they were fetched."""
    posts = fetch.warehouse.posts_needing_detail(fetch.account, _NETWORKS_WITH_POSTS)
    yield from fetch.each(social.GETPOST, ({"id": post_id, "channel": network} for post_id, network in posts))


@source_asset(tables.SOCIAL_LINKS, tables.SOCIAL_LINK_CLICKS)
def social_links(fetch: Fetcher) -> Batches:
    """Short links and how often each network's readers clicked them."""
    yield fetch.once(social.STATS, channels="all", sort="asc")
