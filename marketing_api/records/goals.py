"""Records of conversion goals, and the operations that return them."""

from decimal import Decimal
from typing import Any

from marketing_api.operation import Area
from marketing_api.records.fields import (
    AsWorded,
    MaybeBool,
    MaybeInt,
    MaybeText,
    MaybeTexts,
    Record,
    Rows,
    field,
    key,
)
from marketing_api.records.shapes import Params, items_of, lift_members, read_single, shape_entries


class Goal(Record):
    """One conversion goal."""

    goal_id: int = key("The service's id of the goal.", "id")
    domain_id: MaybeInt = field("Tracked domain, if requested by domain.", "domainid")
    name: MaybeText = field("Name of the goal.")
    value_type: AsWorded = field("How its value is set, e.g. Fixed.")
    value: Decimal | None = field("Value of one conversion.")
    type: AsWorded = field("What counts as a conversion, e.g. Event Triggered.")
    event_type: AsWorded = field("Which event, e.g. Link(s) Clicked.")
    event_link_rule: MaybeText = field("How many of the links must be clicked.")
    links: MaybeTexts = field("The links that count.", link=True)
    has_action: MaybeBool = field("Whether an action follows.")
    action_id: MaybeInt = field("The service's id of the action.")
    action_name: MaybeText = field("Name of the action, or a remark.")


def read_goals(payload: Any, params: Params) -> Rows:
    """`read_goals`: {count, items}."""
    for record, raw in shape_entries(Goal, items_of(payload)):
        if isinstance(raw, dict):
            lift_members(raw, "goal_value", {"type": "value_type", "value": "value"})
            lift_members(raw, "action", {"id": "action_id", "name": "action_name"})
            if "domainid" in params:
                raw["domain_id"] = params["domainid"]
                raw.pop("domainid", None)
        yield record, raw


AREA = Area("goals")
LISTS = AREA.declare_rows("goal/lists", read_goals, Goal)
LISTBYDOMAIN = AREA.declare_rows("goal/listbydomain", read_goals, Goal)
SHOW = AREA.declare_rows("goal/show", read_single(read_goals), Goal)
