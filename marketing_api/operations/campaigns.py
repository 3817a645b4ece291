"""What can be requested about e-mail campaigns and their statistics."""

from marketing_api.operation import Area
from marketing_api.records import campaigns

AREA = Area(__file__)

CAMPAIGNS = AREA.filling("emailmarketing/campaigns", campaigns.campaigns, campaigns.Campaign)
GETCAMPAIGN = AREA.filling("emailmarketing/getcampaign", campaigns.campaign, campaigns.Campaign)
_STATS = campaigns.CampaignStats, campaigns.CampaignLink, campaigns.CampaignClicker
STATS = AREA.filling("emailmarketing/stats", campaigns.statistics, *_STATS)
