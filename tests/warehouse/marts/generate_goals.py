"""Conversion goals of a made-up account; the links are those of its campaigns and visits."""

from __future__ import annotations

from tests.warehouse.marts.made import Made
from tests.warehouse.marts.rows import Row

_MENU, _BOOK = "https://shop.example.com/menu", "https://shop.example.com/book"
_ANY, _ALL = "Any of the links is clicked", "All of the links are clicked"


def goal_rows(made: Made) -> dict[str, list[Row]]:
    """Reached by one link, by all of several (in other spellings), by none, and by what is no link."""
    clicked = {"type": "Event Triggered", "event_type": "Link(s) Clicked"}
    some: list[Row] = [
        {
            "name": "Menu",
            "value_type": "Fixed",
            "value": 2,
            "links": [_MENU],
            "event_link_rule": _ANY,
            **clicked,
        },
        {
            "name": "Booked",
            "value_type": "Fixed",
            "value": 80,
            "links": [f"{_BOOK}?a=1", _MENU.upper()],
            "event_link_rule": _ALL,
            **clicked,
        },
        {
            "name": "Either",
            "value_type": "Variable",
            "value": 0,
            "links": ["http://www.shop.example.com/gift/", _BOOK],
            **clicked,
        },
        {
            "name": "Twice",
            "value_type": "Fixed",
            "links": [_MENU, f"{_MENU}/#top"],
            "event_link_rule": _ALL,
            **clicked,
        },
        {
            "name": "Nobody",
            "value_type": "Fixed",
            "value": 5,
            "type": "Destination URL",
            "links": ["https://shop.example.com/thanks"],
        },
        {
            "name": "Video",
            "value_type": "Fixed",
            "value": 5,
            "event_type": "Video(s) Watched",
            "links": [_MENU],
        },
        {"name": "Pages", "value_type": "Fixed", "value": 5, "type": "Pages per Visit", "links": []},
        {"name": "Gone", "value_type": "Fixed", "value": 5, "links": [_MENU], "_deleted_at": made.moment(2)},
    ]
    return {"goals": [made.row(goal_id=number, **goal) for number, goal in enumerate(some, start=1)]}
