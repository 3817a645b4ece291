"""What can be requested about conversion goals."""

from marketing_api.operation import Area
from marketing_api.records import goals
from marketing_api.records.shapes import single

AREA = Area(__file__)

LISTS = AREA.filling("goal/lists", goals.goals, goals.Goal)
LISTBYDOMAIN = AREA.filling("goal/listbydomain", goals.goals, goals.Goal)
SHOW = AREA.filling("goal/show", single(goals.goals), goals.Goal)
