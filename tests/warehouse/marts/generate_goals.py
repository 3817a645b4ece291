"""Conversion goals of a made-up account; the links are those of its campaigns and visits."""

from tests.warehouse.marts.made import Made
from tests.warehouse.marts.rows import Row

_MENU, _BOOK = "https://shop.example.com/menu", "https://shop.example.com/book"
_THANKS, _GIFT = "https://shop.example.com/thanks", "http://www.shop.example.com/gift"
_ANY, _ALL = "Any of the links is clicked", "All of the links are clicked"


def goal_rows(made: Made) -> dict[str, list[Row]]:
    """Reached by one link, by all of several (in other spellings), by none, and by what is no link."""
    clicked = {"type": "Event Triggered", "event_type": "Link(s) Clicked"}
    fixed, columns = {"value_type": "Fixed"}, "name value links"
    some = [
        made.row(columns, "Menu", 2, [_MENU], event_link_rule=_ANY, **fixed, **clicked),
        made.row(
            columns, "Booked", 80, [f"{_BOOK}?a=1", _MENU.upper()], event_link_rule=_ALL, **fixed, **clicked
        ),
        made.row(columns, "Either", 0, [f"{_GIFT}/", _BOOK], value_type="Variable", **clicked),
        made.row("name links", "Twice", [_MENU, f"{_MENU}/#top"], event_link_rule=_ALL, **fixed, **clicked),
        made.row(columns, "Nobody", 5, [_THANKS], type="Destination URL", **fixed),
        made.row(columns, "Video", 5, [_MENU], event_type="Video(s) Watched", **fixed),
        made.row(columns, "Pages", 5, [], type="Pages per Visit", **fixed),
        made.row(columns, "Gone", 5, [_MENU], _deleted_at=made.moment(2), **fixed),
    ]
    return {"goals": [{**goal, "goal_id": number} for number, goal in enumerate(some, start=1)]}
