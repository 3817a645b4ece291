"""Records of contact lists, their custom fields, and audiences, and the operations that return
them."""

from collections.abc import Callable
from functools import partial
from typing import Any

from marketing_api.operation import Area
from marketing_api.records.fields import (
    MaybeBool,
    MaybeMoment,
    MaybeText,
    Record,
    Rows,
    Unread,
    field,
    key,
    mark_missing,
)
from marketing_api.records.shapes import (
    Entry,
    Params,
    as_object,
    as_objects,
    first_member,
    is_collection,
    is_full,
    is_scalar,
    items_of,
    read_listing,
    shape_entries,
)
from marketing_api.records.values import is_nothing


class ContactList(Record):
    """One contact list. Its messages and pages may contain HTML and placeholders."""

    list_id: int = key("The service's id of the list.", "id")
    name: MaybeText = field("Name of the list.")
    form_title: MaybeText = field("Title of the subscription form.")
    email_subject: MaybeText = field("Subject of the confirmation message.")
    reply_to: MaybeText = field("Address that replies go to.", personal=True)
    from_email: MaybeText = field("Address of the sender.", "fromemail", personal=True)
    from_name: MaybeText = field("Name of the sender.", personal=True)
    confirmation_email: MaybeText = field(
        "Message that asks for confirmation.",
        "confimation_email",
        link=True,
    )
    success_email: MaybeText = field("Message after confirmation.", link=True)
    confirmation_message: MaybeText = field(
        "Page that asks for confirmation.",
        "confimation_message",
        link=True,
    )
    success_message: MaybeText = field("Page after confirmation.", link=True)
    error_message: MaybeText = field("Page after a failure.", link=True)
    is_double_opt_in: MaybeBool = field(
        "Whether a subscription is confirmed by e-mail.", "doubleOptin"
    )
    notify_email: MaybeText = field(
        "Address that gets notices of new subscriptions.", personal=True
    )
    created_at: MaybeMoment = field("When it was created, UTC.", "creation_date")


class ListField(Record):
    """One custom field of one list."""

    list_id: int = key("The list.")
    field_id: str = key("The service's id of the field.")
    label: MaybeText = field("Label of the field.")


class Audience(Record):
    """One audience: a saved selection of contacts."""

    audience_id: int = key("The service's id of the audience.", "id")
    name: MaybeText = field("Name of the audience.")


def read_lists(payload: Any, params: Params, of: Callable[[Any], Any] = items_of) -> Rows:
    """`read_lists`: {count, items}; the items may carry `fields` (observation 17)."""
    if of is as_objects and not as_objects(payload):
        yield mark_missing(ListField, "list")
    for record, raw in shape_entries(ContactList, of(payload), _unify_spelling):
        fields = None
        if isinstance(raw, dict):
            fields = raw.pop("fields", None)
        yield record, raw
        # Entries of a listing may come without fields.
        is_expected = of is as_objects or is_full(fields)
        if is_expected and not _are_complete(fields):
            yield mark_missing(ListField, "fields")
        if fields is not None:
            yield from _shape_fields(fields, raw.get("id"))


#: `list`: one object with `fields`; an empty object says nothing about them.
contact_list = partial(read_lists, of=as_objects)


def _unify_spelling(entry: Entry) -> Entry:
    """Both spellings are in use (observation 17). If both came, the one with a value counts."""
    raw = dict(entry)
    for name in ("email", "message"):
        right = f"confirmation_{name}"
        wrong = f"confimation_{name}"
        if right in raw and wrong in raw:
            del raw[right if is_nothing(raw[right]) else wrong]
    return raw


def _are_complete(fields: Any) -> bool:
    """Whether these are all fields of a list: {field id: label} or an empty collection. Entries of
    another kind prove nothing."""
    if not isinstance(fields, dict):
        return bool(fields == [])
    return all(name.isdecimal() and isinstance(label, str) for name, label in fields.items())


#: What fields may be wrapped in.
_AROUND = frozenset({"field", "fields", "items", "data"})


def _shape_fields(fields: Any, list_id: Any) -> Rows:
    """`fields`: {field id: label}, or entries with id and label; either may be in a list or in a
    wrapper.

    A position in a list is no id, so a label without an id is rejected. So is a collection under an
    unknown name."""
    if not is_collection(fields):
        yield ListField, fields
        return
    is_list = isinstance(fields, list)
    for name, label in as_object(fields).items():
        if first_member(label, "label", "name") is not None:
            yield ListField, _shape_labelled_field(label, list_id, None if is_list else name)
        elif _is_wrapper(label, None if is_list else name):
            yield from _shape_fields(label, list_id)
        elif is_list:
            yield ListField, label
        else:
            yield ListField, _shape_named_field(name, label, list_id)


def _is_wrapper(value: Any, name: str | None) -> bool:
    """Whether it is a collection of fields. In a list it has no name, and no id either."""
    if not is_full(value):
        return False
    if name is not None:
        return name.lower() in _AROUND
    return not is_scalar(first_member(value, "id"))


def _shape_named_field(name: str, label: Any, list_id: Any) -> Entry | Unread:
    if name.lower() == "count" or (is_full(label) and not name.isdecimal()):
        return Unread({name: label}, "field_id: not a field")
    return {"list_id": list_id, "field_id": name, "label": label}


def _shape_labelled_field(entry: Entry, list_id: Any, name: str | None) -> Entry:
    """An entry with its own label."""
    beside = {
        other: value
        for other, value in entry.items()
        if other.lower() not in ("id", "label", "name")
    }
    field_id = first_member(entry, "id") or name
    label = first_member(entry, "label", "name")
    return {**beside, "list_id": list_id, "field_id": field_id, "label": label}


AREA = Area("lists")
GETLISTS = AREA.declare_rows("emailmarketing/getlists", read_lists, ContactList, ListField)
GETLIST = AREA.declare_rows("emailmarketing/getlist", contact_list, ContactList, ListField)
GETAUDIENCES = AREA.declare_rows("emailmarketing/getaudiences", read_listing(Audience), Audience)
