"""What can be requested about social channels, posts and links."""

from marketing_api.operation import an_id, boolean, choice, date, paging, read
from marketing_api.records import social

CALENDAR_CHANNELS = ("all", "facebook", "twitter", "linkedin")
POST_CHANNELS = ("facebook", "twitter", "linkedin")
_SORT = choice("sort", "asc", "desc", default="asc")

CHANNELS = read(
    "socialmedia/channels",
    "The connected pages and profiles by network.",
    at="channels",
    records=(social.SocialProfile,),
    rows=social.profiles,
)

CALENDAR = read(
    "socialmedia/calendar",
    "Posts by date: scheduled ones, and posted ones when requested.",
    choice("channels", *CALENDAR_CHANNELS, many=True, default="all"),
    date("from", "Optional in a variant.", required=True),
    date("to", "Optional in a variant.", required=True),
    boolean("includeposted", "Posts already published, too.", default="false"),
    *paging(),
    _SORT,
    entries_at="calendar",
    records=(social.SocialPost,),
    rows=social.posts,
)

STATS = read(
    "socialmedia/stats",
    "Short links in posts, and their clicks per network.",
    choice("channels", *CALENDAR_CHANNELS, "pinterest", many=True, default="all"),
    _SORT,
    entries_at="stats",
    records=(social.SocialLink, social.SocialLinkClicks),
    rows=social.links,
)

GETPOST = read(
    "socialmedia/getpost",
    "One post.",
    an_id("id", "Post id.", required=True),
    choice("channel", *POST_CHANNELS, required=True),
    at="item",
    records=(social.SocialPostDetail,),
    rows=social.post_details,
)
