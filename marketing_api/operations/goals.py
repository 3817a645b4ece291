"""What can be requested about conversion goals, and how they are written."""

from marketing_api.operation import Effect, an_id, choice, each, link, number, read, text, write
from marketing_api.records import goals

_ID = an_id("id", "Goal id.", required=True)

LISTS = read("goal/lists", "All goals.", entries_at="goals", records=(goals.Goal,), rows=goals.goals)

LISTBYDOMAIN = read(
    "goal/listbydomain",
    "The goals of one tracked domain.",
    an_id("domainid", "Domain id.", required=True),
    entries_at="goals",
    records=(goals.Goal,),
    rows=goals.goals,
)

SHOW = read("goal/show", "One goal.", _ID, at="goal", records=(goals.Goal,), rows=goals.goal)

_CONTENT = (
    text("name", required=True),
    choice("type", "url", "duration", "pages", "ppc", "event", "funnel", doc="`funnel` is absent in a variant.", required=True),
    choice("value_type", "fixed", "variable"),
    number("value", "When the value is fixed."),
    link("destination_url"),
    *each(number, "duration_hours", "duration_minutes", "duration_seconds", "pages"),
    choice("ppc_networks", "google", "bing", "facebook", "twitter", "linkedin", many=True),
    choice("event_type", "links", "videos", "form"),
    choice("goal_event_filter", "any", "all"),
    link("event_links", many=True),
    link("event_videos", many=True),
    choice("form_identity_type", "id", "name"),
    text("form_identity"),
)

ADD = write("goal/add", "Create a goal.", an_id("domainid", "Domain id.", required=True), *_CONTENT)

EDIT = write("goal/edit", "Change a goal.", _ID, *_CONTENT)

DELETE = write("goal/delete", "Delete a goal.", _ID, effect=Effect.DELETE)
