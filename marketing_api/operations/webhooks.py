"""What can be requested about behavioural webhooks (shown to visitors of a site)."""

from marketing_api.operation import Area
from marketing_api.records import webhooks
from marketing_api.records.shapes import single

AREA = Area(__file__)

LISTS = AREA.filling("webhook/lists", webhooks.webhooks, webhooks.Webhook)
SHOW = AREA.filling("webhook/show", single(webhooks.webhooks), webhooks.Webhook)
