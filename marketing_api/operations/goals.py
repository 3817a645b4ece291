"""What can be requested about conversion goals."""

from marketing_api.operation import an_id, read
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
