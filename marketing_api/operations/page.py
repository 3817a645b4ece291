"""The reference page `docs/operations.md`, written from the declarations: `python -m marketing_api.operations.page`.

Not here: any fact about an operation. A test fails when the page is stale.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from marketing_api.operation import Effect, Kind, Operation, Parameter
from marketing_api.operations import ALL, AREAS

PAGE = Path(__file__).parents[2] / "docs" / "operations.md"

_INTRO = """\
# Operations

Written by `python -m marketing_api.operations.page` from `marketing_api/operations/`; change it there.

The service offers {all} operations: {reads} reads and {writes} writes. Any of them can be called with
`marketing-sync call OPERATION name=value…`; a call that does not fit its declaration is refused before it costs a request.

- **Effect**: *read* changes nothing; *write* and *delete* change the account; *send* reaches people (publishes a post, may send a
  campaign, charges a card). Only reads are ever repeated by themselves.
- **Required** parameters are those that any variant of the specification requires, so that a call satisfies all of them.
- Choices are compared ignoring case. Values marked *several* may be a list, and are sent comma-separated.
- Dates may be given as `2026-01-31` or `01/31/2026`, and are sent in the first form; date-times as `2026-01-31 14:05:00`.
- Secrets are never logged or archived.
- Answers are JSON. The service also speaks XML, of which no sample exists: it is not supported.
"""

_KINDS = {
    Kind.TEXT: "text",
    Kind.NUMBER: "number",
    Kind.ID: "id",
    Kind.BOOLEAN: "`true` or `false`",
    Kind.FLAG: "`0` or `1`",
    Kind.DATE: "date",
    Kind.DATETIME: "date-time",
    Kind.DAY_OR_TIME: "date or date-time",
    Kind.TIME: "time of day",
    Kind.EMAIL: "e-mail address",
    Kind.LINK: "link",
    Kind.FIELDS: "map, sent as `fields[ID]=value`",
}


def render() -> str:
    """The whole page."""
    reads = sum(operation.is_read for operation in ALL.values())
    lines = [_INTRO.format(all=len(ALL), reads=reads, writes=len(ALL) - reads)]
    for area, operations in AREAS.items():
        lines += _area(area, operations)
    return "\n".join(lines).rstrip() + "\n"


def _area(area: str, operations: tuple[Operation, ...]) -> Iterator[str]:
    yield f"## {area.capitalize()}\n"
    yield "| operation | method | effect | what it does |"
    yield "|---|---|---|---|"
    for operation in operations:
        yield f"| [{operation.name}](#{_anchor(operation)}) | {operation.method} | {operation.effect} | {_cell(operation.doc)} |"
    yield ""
    for operation in operations:
        yield from _operation(operation)


def _anchor(operation: Operation) -> str:
    """The anchor that Markdown renderers give the operation's heading."""
    return operation.name.replace("/", "")


def _operation(operation: Operation) -> Iterator[str]:
    yield f"### {operation.name}\n"
    yield f"{operation.doc} {' '.join(_facts(operation))}\n"
    if not operation.parameters:
        yield "No parameters.\n"
        return
    yield "| parameter | required | value | default | notes |"
    yield "|---|---|---|---|---|"
    for parameter in operation.parameters:
        default = f"`{parameter.default}`" if parameter.default is not None else ""
        required = "yes" if parameter.required else ""
        yield f"| `{parameter.name}` | {required} | {_value(parameter)} | {default} | {_cell(_notes(parameter))} |"
    yield ""


def _facts(operation: Operation) -> Iterator[str]:
    if operation.is_read:
        yield f"The payload is `data.{operation.at}`." if operation.at else "The payload is `data` itself."
    if operation.records:
        yield f"Read as {', '.join(f'`{record.__name__}`' for record in operation.records)}."
    elif operation.is_read:
        yield "A look-up: it fills no table."
    if operation.result:
        yield f"The answer holds {', '.join(f'`{name}`' for name in operation.result)}."
    if operation.paging:
        yield f"Read page by page, {operation.paging.size:,} entries asked at a time."
    if operation.needs_one:
        yield f"One of {', '.join(f'`{name}`' for name in operation.needs_one)} is required."
    if operation.is_secret:
        yield "The answer is a secret."
    if operation.effect is not Effect.READ and operation.method == "GET":
        yield "Mind that this is a GET all the same."


def _value(parameter: Parameter) -> str:
    words = _KINDS[parameter.kind]
    if parameter.choices and parameter.kind is not Kind.FLAG:
        words = ", ".join(f"`{choice}`" for choice in parameter.choices)
    if parameter.maximum is not None:
        words += f", at most {parameter.maximum:,}"
    return f"{words} (several)" if parameter.many else words


def _notes(parameter: Parameter) -> str:
    return " ".join(note for note in (parameter.doc, "Secret." if parameter.secret else "") if note)


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


if __name__ == "__main__":
    PAGE.write_text(render(), encoding="utf-8")
    print(f"wrote {PAGE}")
