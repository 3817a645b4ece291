"""What can be requested about social channels, posts and links."""

from marketing_api.operation import Area
from marketing_api.records import social

AREA = Area(__file__)

CHANNELS = AREA.filling("socialmedia/channels", social.profiles, social.SocialProfile)
CALENDAR = AREA.filling("socialmedia/calendar", social.posts, social.SocialPost)
STATS = AREA.filling("socialmedia/stats", social.links, social.SocialLink, social.SocialLinkClicks)
GETPOST = AREA.filling("socialmedia/getpost", social.post_details, social.SocialPostDetail)

#: Networks whose posts can be requested one by one.
POST_CHANNELS = GETPOST.parameter("channel").choices
