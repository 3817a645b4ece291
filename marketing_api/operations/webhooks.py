"""What can be requested about behavioural webhooks (shown to visitors of a site)."""

from marketing_api.operation import Area
from marketing_api.records import webhooks

AREA = Area(__file__)

LISTS = AREA.filling("webhook/lists", webhooks.webhooks, webhooks.Webhook)
SHOW = AREA.filling("webhook/show", webhooks.webhook, webhooks.Webhook)
