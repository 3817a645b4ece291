"""Timelines as the service gives them."""

from typing import Any

from marketing_api.exchange import Response
from marketing_api.operations import contacts
from tests.warehouse.answering import Home
from warehouse import tables
from warehouse.loads.load import LoadReport

TABLES = (tables.TIMELINE_EVENTS, tables.TIMELINE_VISITS, tables.TIMELINE_AUTOMATIONS)


def event(second: int, opened: str = "N/A", kind: str = "email-campaign-sent") -> dict[str, Any]:
    details = [{"key": "open-date", "label": "Opened", "value": opened}]
    return {
        "key": kind,
        "snippet": "Spring sale",
        "timestamp": 1_700_000_000 + second,
        "datetime": "-",
        "details": details,
    }


def timeline(
    home: Home,
    contact_id: int,
    *events: dict[str, Any],
    total: int | None = None,
    minutes: float = 0,
    **more: Any,
) -> Response:
    """The answer for one contact; `total` above the number of events means that it was cut."""
    data = {
        "id": contact_id,
        "timeline": {
            "data": list(events),
            "count": len(events),
            "total": len(events) if total is None else total,
        },
    }
    return home.answer(contacts.TIMELINE, data | more, minutes, id=contact_id, include="utm,automated")


def load(home: Home, *answers: Response) -> LoadReport:
    """Load them into the three tables."""
    return home.load(answers, *TABLES)
