"""What can be requested about behavioural webhooks (shown to visitors of a site)."""

from marketing_api.operation import an_id, read
from marketing_api.records import webhooks

_ID = an_id("id", "Webhook id.", required=True)

LISTS = read("webhook/lists", "All webhooks.", entries_at="webhooks", records=(webhooks.Webhook,), rows=webhooks.webhooks)

SHOW = read("webhook/show", "One webhook.", _ID, at="webhook", records=(webhooks.Webhook,), rows=webhooks.webhook)
