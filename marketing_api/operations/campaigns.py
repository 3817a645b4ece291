"""What can be requested about e-mail campaigns and their statistics."""

from marketing_api.operation import an_id, choice, date, paging, read
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
    is_grouped=True,
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
