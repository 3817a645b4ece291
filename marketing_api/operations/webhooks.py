"""What can be requested about behavioural webhooks (shown to visitors of a site), and how they are written."""

from marketing_api.operation import Effect, an_id, choice, date, each, link, number, read, text, write
from marketing_api.records import webhooks

_ID = an_id("id", "Webhook id.", required=True)

LISTS = read("webhook/lists", "All webhooks.", entries_at="webhooks", records=(webhooks.Webhook,), rows=webhooks.webhooks)

SHOW = read("webhook/show", "One webhook.", _ID, at="webhook", records=(webhooks.Webhook,), rows=webhooks.webhook)

_CONTENT = (
    text("name", required=True),
    choice("type", "page_exit", "page_entry", "goal_trigger", required=True),
    choice("action_type", "html_msg", "form", "poll", "redirection", "trigger_js", doc="Optional in a variant.", required=True),
    an_id("domainid", "Domain id. Optional in a variant.", required=True),
    text("action_url"),
    link("redirection_url"),
    an_id("list_id"),
    *each(text, "poll_question", "poll_choices", "js_code"),
    *each(date, "action_startdate", "action_enddate"),
    choice("action_targetusers", "all", "subscribers", "anonymous"),
    choice("action_devicefilter", "all", "desktop", "mobile"),
    choice("action_ppcfilter", "google", "bing", "facebook", "twitter", "linkedin"),
    text("action_geofilter"),
    choice("action_frequency", "repeat", "one_time"),
    *each(number, "delay_hours", "delay_minutes", "delay_seconds"),
    choice("action_style", "popup", "sticky_bar"),
    text("action_text"),
)

ADD = write("webhook/add", "Create a webhook.", *_CONTENT)

EDIT = write("webhook/edit", "Change a webhook.", _ID, *_CONTENT)

DELETE = write("webhook/delete", "Delete a webhook.", _ID, effect=Effect.DELETE)
