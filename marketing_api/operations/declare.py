"""Small constructors with which the operations of an area are declared, so that a declaration reads like the specification.

Not here: any operation.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from marketing_api.operation import Effect, Kind, Operation, Paging, Parameter

#: Members of a write's response (api-observed row 7).
ITEM = ("item",)
ID_ITEM = ("id", "item")


def read(name: str, doc: str, *parameters: Parameter, at: str = "", **more: Any) -> Operation:
    """A GET that changes nothing."""
    return Operation(name, "GET", Effect.READ, doc, parameters, at=at, **more)


def write(
    name: str,
    doc: str,
    *parameters: Parameter,
    effect: Effect = Effect.WRITE,
    result: tuple[str, ...] = ITEM,
    method: str = "POST",
    needs_one: tuple[str, ...] = (),
) -> Operation:
    """A request that changes the account."""
    return Operation(name, method, effect, doc, parameters, needs_one, result=result)


text = Parameter
number = partial(Parameter, kind=Kind.NUMBER)
an_id = partial(Parameter, kind=Kind.ID)
ids = partial(Parameter, kind=Kind.ID, many=True)
email = partial(Parameter, kind=Kind.EMAIL)
link = partial(Parameter, kind=Kind.LINK)
date = partial(Parameter, kind=Kind.DATE)
moment = partial(Parameter, kind=Kind.DATETIME)
day_or_moment = partial(Parameter, kind=Kind.DAY_OR_TIME)
boolean = partial(Parameter, kind=Kind.BOOLEAN)
flag = partial(Parameter, kind=Kind.FLAG, choices=("0", "1"))
FIELDS = Parameter("fields", "Custom-field values by field id.", Kind.FIELDS)


def choice(name: str, *choices: str, **more: Any) -> Parameter:
    return Parameter(name, choices=choices, **more)


def paging(*, is_specified: bool = True) -> tuple[Parameter, Parameter]:
    """`limit` and `page`; listings that honour them without saying so (api-observed row 14) default to 100 entries."""
    note = "" if is_specified else " Not specified, yet honoured (api-observed row 14)."
    return (
        number("limit", f"Entries on a page.{note}", default="10" if is_specified else "100"),
        number("page", f"Which page, from 1.{note}", default="1"),
    )


PAGED = Paging()
