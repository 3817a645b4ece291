"""Small constructors with which the operations of an area are declared, so that a declaration reads like the specification.

Not here: any operation.
"""

from __future__ import annotations

from typing import Any

from marketing_api.operation import Effect, Kind, Operation, Paging, Parameter

#: Members of a write's response (api-observed row 7).
ITEM = ("item",)
ID_ITEM = ("id", "item")


def read(name: str, doc: str, *parameters: Parameter, at: str = "", **more: Any) -> Operation:
    """A GET that changes nothing."""
    return Operation(name, "GET", Effect.READ, doc, parameters, at=at, **more)


def write(name: str, doc: str, *parameters: Parameter, effect: Effect = Effect.WRITE, result: tuple[str, ...] = ITEM) -> Operation:
    """A POST that changes the account."""
    return Operation(name, "POST", effect, doc, parameters, result=result)


def text(name: str, doc: str = "", **more: Any) -> Parameter:
    return Parameter(name, doc=doc, **more)


def number(name: str, doc: str = "", **more: Any) -> Parameter:
    return Parameter(name, Kind.NUMBER, doc=doc, **more)


def an_id(name: str = "id", doc: str = "", **more: Any) -> Parameter:
    return Parameter(name, Kind.ID, doc=doc, **more)


def ids(name: str, doc: str = "", **more: Any) -> Parameter:
    return Parameter(name, Kind.ID, many=True, doc=doc, **more)


def email(name: str = "email", doc: str = "", **more: Any) -> Parameter:
    return Parameter(name, Kind.EMAIL, doc=doc, **more)


def link(name: str, doc: str = "", **more: Any) -> Parameter:
    return Parameter(name, Kind.LINK, doc=doc, **more)


def date(name: str, doc: str = "", **more: Any) -> Parameter:
    return Parameter(name, Kind.DATE, doc=doc, **more)


def moment(name: str, doc: str = "", **more: Any) -> Parameter:
    return Parameter(name, Kind.DATETIME, doc=doc, **more)


def day_or_moment(name: str, doc: str = "", **more: Any) -> Parameter:
    return Parameter(name, Kind.DAY_OR_TIME, doc=doc, **more)


def boolean(name: str, doc: str = "", **more: Any) -> Parameter:
    return Parameter(name, Kind.BOOLEAN, doc=doc, **more)


def flag(name: str, doc: str = "", **more: Any) -> Parameter:
    return Parameter(name, Kind.FLAG, choices=("0", "1"), doc=doc, **more)


def choice(name: str, *choices: str, doc: str = "", **more: Any) -> Parameter:
    return Parameter(name, choices=choices, doc=doc, **more)


def fields() -> Parameter:
    return Parameter("fields", Kind.FIELDS, doc="Custom-field values by field id.")


def paging(*, is_specified: bool = True) -> tuple[Parameter, Parameter]:
    """`limit` and `page`; listings that honour them without saying so (api-observed row 14) default to 100 entries."""
    note = "" if is_specified else " Not specified, yet honoured (api-observed row 14)."
    return (
        number("limit", f"Entries on a page.{note}", default="10" if is_specified else "100"),
        number("page", f"Which page, from 1.{note}", default="1"),
    )


PAGED = Paging()
