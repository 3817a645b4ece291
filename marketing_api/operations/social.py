"""What can be requested about social channels, posts and links, and how posts are written."""

from marketing_api.operation import PAGED, Effect, Kind, an_id, boolean, choice, date, ids, link, moment, paging, read, text, write
from marketing_api.records import social

CALENDAR_CHANNELS = ("all", "facebook", "twitter", "linkedin")
POST_CHANNELS = ("facebook", "twitter", "linkedin")
ADD_CHANNELS = (*POST_CHANNELS, "pinterest", "instagram")
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
    paging=PAGED,
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

_SCHEDULE = (
    link("photo", "Link to an image."),
    boolean("isscheduled", "Publish in the future instead of at once.", default="false"),
    date("scheduleddate"),
    text("scheduledhours", kind=Kind.TIME),
    choice("scheduledampm", "AM", "PM", "am", "pm"),
    boolean("trackableLinks", "Turn links in the message into short URLs.", default="false"),
    choice("channels", *CALENDAR_CHANNELS, many=True, doc="Stands for the channel in a variant."),
)

ADDPOST = write(
    "socialmedia/addpost",
    "Publish or schedule a post.",
    text("message", required=True),
    choice("channel", *ADD_CHANNELS, required=True),
    ids("channelid", "Ids of pages or profiles (api-observed row 24: not only 1 to 4).", required=True),
    *_SCHEDULE,
    effect=Effect.SEND,
    result=("post_id", "item"),
)

EDITPOST = write(
    "socialmedia/editpost",
    "Change a post and schedule it again.",
    an_id("id", "Post id.", required=True),
    choice("channel", *ADD_CHANNELS, required=True),
    text("message"),
    moment("scheduleddatetime"),
    *_SCHEDULE,
    effect=Effect.SEND,
)

DELETEPOST = write(
    "socialmedia/deletepost",
    "Delete a post (the machine description says DELETE; POST is the primary rule).",
    an_id("id", "Post id.", required=True),
    choice("channel", *POST_CHANNELS),
    effect=Effect.DELETE,
)
