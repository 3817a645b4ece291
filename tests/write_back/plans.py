"""Plans to fill an outbox with: small, made of invented rows."""

from collections.abc import Sequence

from marketing_api.operations import contacts
from write_back.item import Expected, Item, Plan, Reason, Source
from write_back.kinds import ACTIVITIES, CONTACTS, TAGS
from write_back.outbox.outbox import Entry, Outbox


def tag(row: int, email: str = "", *, name: str = "vip", action: str = "add") -> Item:
    email = email or f"person{row}@example.com"
    operation = contacts.ADDTAG if action == "add" else contacts.REMOVETAG
    effects = {f"{email}|{name}": action}
    return Item(TAGS, (row,), operation.name, {"email": email, "tagname": name}, effects, email=email)


def activity(
    row: int, contact_id: int, description: str, at: str = "2026-01-05 12:00:00", *, unix: int = 1767614400
) -> Item:
    return Item(
        ACTIVITIES,
        (row,),
        contacts.ADDACTIVITY.name,
        {"id": str(contact_id), "description": description, "datetime": at},
        {f"{contact_id}|{at}|{description}": ""},
        expected=Expected(description=description, at=unix),
        contact_id=contact_id,
    )


def contact(
    row: int, email: str, *list_ids: int, status: str | None = "Active", fields: dict[str, str] | None = None
) -> Item:
    values = fields or {}
    params = {
        "email": email,
        "listid": ",".join(map(str, list_ids)),
        **{f"fields[{name}]": value for name, value in values.items()},
    }
    word = {"Active": "active", "Disactive": "unsubscribed", None: None}[status]
    return Item(
        CONTACTS,
        (row,),
        contacts.SYNCCONTACT.name,
        params if status is None else {**params, "status": status},
        {f"{email.lower()}|{list_id}": f"{word}{sorted(values.items())}" for list_id in list_ids},
        expected=Expected(status=word, fields=values, lists=list(list_ids)),
        email=email,
    )


def find_entry(outbox: Outbox, item_id: int) -> Entry:
    return next(entry for entry in outbox.changed_since(-1) if entry.item_id == item_id)


def a_plan(*items: Item, account: str = "main", idle: Sequence[int] = (), bad: Sequence[Reason] = ()) -> Plan:
    kind = items[0].kind if items else TAGS
    rows = sum(len(item.rows) for item in items) + len(idle) + len(bad)
    idle_rows = tuple(Reason((row,), "unchanged") for row in idle)
    return Plan(
        account,
        kind,
        Source("rows.csv", "0" * 32),
        rows,
        tuple(items),
        new_count=len(items),
        idle=idle_rows,
        bad=tuple(bad),
    )
