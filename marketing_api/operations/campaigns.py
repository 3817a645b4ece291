"""What can be requested about e-mail campaigns and their statistics, and how campaigns are written."""

from marketing_api.operation import ID_ITEM, Effect, Kind, Paging, an_id, boolean, choice, date, each, email, ids, paging, read, text, write
from marketing_api.records import campaigns

#: Optional in one variant and required in another, so it is always sent.
_TYPE = choice("type", "standard", "automated", required=True)
_ID = an_id("id", "Campaign id.", required=True)

CAMPAIGNS = read(
    "emailmarketing/campaigns",
    "Campaigns by status group.",
    choice("filter", "all", "sent", "scheduled", "draft", "automation", required=True, default="all"),
    date("from"),
    date("to"),
    *paging(),
    entries_at="campaigns",
    paging=Paging(by_group=True),
    records=(campaigns.Campaign,),
    rows=campaigns.campaigns,
)

GETCAMPAIGN = read(
    "emailmarketing/getcampaign",
    "One campaign with its body.",
    _ID,
    _TYPE,
    at="item",
    records=(campaigns.Campaign,),
    rows=campaigns.campaign,
)

STATS = read(
    "emailmarketing/stats",
    "Opens, bounces and clicks of one campaign, as of now.",
    _ID,
    _TYPE,
    at="campaign",
    records=(campaigns.CampaignStats, campaigns.CampaignLink, campaigns.CampaignClicker),
    rows=campaigns.statistics,
)


_CONTENT = (
    *each(text, "name", "subject", required=True),
    email("fromemail", "Optional in a variant.", required=True),
    text("from_name", "Optional in a variant.", required=True),
    email("reply_to", "Optional in a variant.", required=True),
    text("body", required=True),
    _TYPE,
    *each(boolean, "isscheduled", "isdraft"),
    text(
        "scheduled_datetime",
        "The specification shows a date only; the live service wants m/d/Y H:i (api-observed row 34).",
        kind=Kind.DAY_OR_TIME,
    ),
    ids("audiences", "Audience ids."),
    ids("lists", "List ids."),
)

ADDCAMPAIGN = write(
    "emailmarketing/addcampaign",
    "Create a campaign; unless it is a draft it may be sent (on the live service only editing sends it, api-observed row 34).",
    *_CONTENT,
    effect=Effect.SEND,
    result=ID_ITEM,
)

EDITCAMPAIGN = write(
    "emailmarketing/editcampaign",
    "Change a campaign; unless it is a draft it may be sent.",
    _ID,
    *_CONTENT,
    effect=Effect.SEND,
)

DELETECAMPAIGN = write("emailmarketing/deletecampaign", "Delete a campaign.", _ID, _TYPE, effect=Effect.DELETE)
