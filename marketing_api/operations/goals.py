"""What may be asked about conversion goals, and how they are written."""

from __future__ import annotations

from marketing_api.operation import Effect
from marketing_api.operations.declare import an_id, choice, link, number, read, text, write
from marketing_api.parameter import Kind, Parameter

GOAL_ID = an_id(doc="Goal id.", required=True)

GOALS = read("goal/lists", "All goals.", at="goals")

GOALS_BY_DOMAIN = read("goal/listbydomain", "The goals of one tracked domain.", an_id("domainid", "Domain id.", required=True), at="goals")

GOAL = read("goal/show", "One goal.", GOAL_ID, at="goal")

_CONTENT = (
    text("name", required=True),
    choice("type", "url", "duration", "pages", "ppc", "event", "funnel", doc="`funnel` is absent in a variant.", required=True),
    choice("value_type", "fixed", "variable"),
    number("value", "When the value is fixed."),
    link("destination_url"),
    number("duration_hours"),
    number("duration_minutes"),
    number("duration_seconds"),
    number("pages"),
    choice("ppc_networks", "google", "bing", "facebook", "twitter", "linkedin", many=True),
    choice("event_type", "links", "videos", "form"),
    choice("goal_event_filter", "any", "all"),
    Parameter("event_links", Kind.LINK, many=True),
    Parameter("event_videos", Kind.LINK, many=True),
    choice("form_identity_type", "id", "name"),
    text("form_identity"),
)

ADD_GOAL = write("goal/add", "Create a goal.", an_id("domainid", "Domain id.", required=True), *_CONTENT)

EDIT_GOAL = write("goal/edit", "Change a goal.", GOAL_ID, *_CONTENT)

DELETE_GOAL = write("goal/delete", "Delete a goal.", GOAL_ID, effect=Effect.DELETE)

OPERATIONS = (GOALS, GOALS_BY_DOMAIN, GOAL, ADD_GOAL, EDIT_GOAL, DELETE_GOAL)
