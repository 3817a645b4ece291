"""Writes the generated pages (`make docs`): templates of `docs/templates`, filled with declared
values. A test fails when a page is stale."""

import ast
import inspect
import json
import re
import tomllib
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from itertools import groupby, pairwise, takewhile
from pathlib import Path
from typing import Any

import jinja2
import msgspec

from docs.models import metrics
from home import output
from home.settings import VARIABLES
from marketing_api.operation import Operation, Parameter
from marketing_api.operations import ALL, AREAS
from marketing_api.paging import PAGE_SIZE
from marketing_api.sandbox.control import PATHS
from marketing_api.sandbox.faults import FAULTS
from marketing_api.sandbox.options import DEFAULT_KEY
from warehouse.dbt_project import PROJECT, Node
from warehouse.masking import is_link, is_personal
from warehouse.models import ModelSettings
from warehouse.tables import (
    ALL_TABLES,
    SYNC_TABLES,
    TABLES,
    TABLES_OF_COPY,
    Column,
    SyncTable,
    Table,
)

DOCS = Path(__file__).parent
CONFIGURATION = DOCS / "configuration.md"
#: Columns of many `source` tables, which the page of tables names once.
_SHARED_COLUMNS = (
    *("account", "extra", "email_normalized"),
    *("_first_seen_at", "_changed_at", "_deleted_at"),
)
#: Columns with the same description in this many tables are described once.
_MANY_TABLES = 3
#: Type of a column by its name, as the page of tables explains it; others are text.
_USUAL_TYPES = {
    r"_(id|count)$": "BIGINT",
    r"_at$": "TIMESTAMPTZ",
    r"_on$": "DATE",
    r"^(is|has)_": "BOOLEAN",
    "": "VARCHAR",
}


def operations() -> str:
    """Every operation with its parameters."""
    reads = sum(operation.is_read for operation in ALL.values())
    return _render(
        "operations.md",
        operations=ALL,
        reads=reads,
        areas=AREAS,
        page_size=PAGE_SIZE,
        repeats={name: repeated_parameters(operation) for name, operation in ALL.items()},
    )


#: Fewer parameters than these are repeated on the page instead of linked.
_LONG_LIST = 5


def repeated_parameters(operation: Operation) -> tuple[Operation, list[Parameter]] | None:
    """The first operation with the same last parameters, if it is an earlier one, and these
    parameters."""
    for other in ALL.values():
        if other is operation:
            return None
        pairs = zip(reversed(operation.parameters), reversed(other.parameters), strict=False)
        same = [mine for mine, _ in takewhile(lambda pair: pair[0] == pair[1], pairs)]
        if len(same) >= _LONG_LIST:
            return other, same[::-1]
    return None


def _schema() -> dict[str, Any]:
    """The documents of `--json` and their parts as JSON Schema, by name, with their texts."""
    defined = msgspec.json.schema_components(output.DOCUMENTS)[1]
    for name, structure in defined.items():
        defined[name] = {"title": name, "description": structure["description"]} | structure
        for field, text in _field_texts(getattr(output, name)).items():
            structure["properties"][field] = {"description": text} | structure["properties"][field]
    return defined


def _field_texts(structure: type[msgspec.Struct]) -> dict[str, str]:
    """Field → the text below it, if it has one."""
    [declared] = ast.parse(inspect.getsource(structure)).body
    assert isinstance(declared, ast.ClassDef)
    return {
        ast.unparse(field.target): " ".join(str(text.value.value).split())
        for field, text in pairwise(declared.body)
        if isinstance(field, ast.AnnAssign) and isinstance(text, ast.Expr)
        if isinstance(text.value, ast.Constant)
    }


def group_fields(properties: Mapping[str, Any]) -> list[tuple[list[str], Any]]:
    """(fields, their schema): neighbours that mean the same together, whatever their defaults."""
    meanings = {field: {**how, "default": None} for field, how in properties.items()}
    groups = groupby(meanings, key=meanings.__getitem__)
    return [(list(fields), how) for how, fields in groups]


def json_schema() -> str:
    return (
        json.dumps(
            {"$schema": "https://json-schema.org/draft/2020-12/schema", "$defs": _schema()},
            indent=2,
        )
        + "\n"
    )


def json_output() -> str:
    """What commands print with `--json`: the documents first, then their parts."""
    defined = _schema()
    first = [kind.__name__ for kind in output.DOCUMENTS]
    return _render(
        "json-output.md",
        structures={name: defined[name] for name in dict.fromkeys([*first, *sorted(defined)])},
    )


def sandbox() -> str:
    """The sandbox: its account, how to fail and what to ask it."""
    return _render(
        "sandbox.md",
        default_key=DEFAULT_KEY,
        faults=FAULTS,
        paths=[(path, " ".join((handle.__doc__ or "").split())) for path, handle in PATHS.items()],
    )


@dataclass(frozen=True)
class Member:
    """A member of a response type in `templates/expected.toml`; `rows` are the observations about
    it."""

    name: str
    kind: str
    rows: str
    is_optional: bool
    is_specified: bool

    @classmethod
    def parse(cls, name: str, declared: str | list[str]) -> "Member":
        kind, rows = (declared, "") if isinstance(declared, str) else declared
        is_optional = name.endswith("?") or "*" in name
        is_specified = not rows.startswith("only ")
        return cls(name.rstrip("?"), kind, rows.removeprefix("only "), is_optional, is_specified)


def expected_types() -> Mapping[str, list[Member]]:
    """The members of each type that responses are made of."""
    types = _declared("expected")["types"]
    return {
        name: [Member.parse(member, declared) for member, declared in members.items()]
        for name, members in types.items()
    }


def how_sure() -> str:
    """What is specified, observed and assumed about each read, and about the service."""
    return _render(
        "how-sure.md",
        evidence=_declared("evidence"),
        reads=_declared("expected")["reads"],
        types=expected_types(),
    )


def tables() -> str:
    """Every `source` and `sync` table with its columns."""
    areas = {
        area: list(members)
        for area, members in groupby(TABLES.values(), key=lambda table: table.area)
    }
    return _render(
        "tables.md",
        areas=areas,
        source=TABLES,
        sync=(*SYNC_TABLES, *TABLES_OF_COPY),
        operations=ALL,
        hidden=_SHARED_COLUMNS,
        once=described_once(),
        rows=group_columns,
    )


def described_once() -> dict[str, Column]:
    """The columns that many tables have with the same description, by name."""
    columns = [column for table in ALL_TABLES for column in table.columns if not column.is_internal]
    counts = Counter((column.name, column.comment) for column in columns)
    return {
        column.name: column
        for column in columns
        if counts[column.name, column.comment] >= _MANY_TABLES and _describe_column(column)
    }


def group_columns(table: Table | SyncTable, hidden: Collection[str]) -> list[tuple[list[str], str]]:
    """(columns as written on the page, their description): neighbours with the same description
    together, without a description that is elsewhere on the page."""
    once = described_once()
    texts = {
        column: "" if column == once.get(column.name) else _describe_column(column)
        for column in table.columns
        if column.name not in hidden and not column.is_internal
    }
    return [
        ([_name_column(column, table.key) for column in columns], text)
        for text, columns in groupby(texts, key=texts.__getitem__)
    ]


def _describe_column(column: Column) -> str:
    text = column.comment
    if text == f"The service's id of the {column.name.removesuffix('_id')}.":
        text = ""
    marks = " *Personal.*" * column.is_personal + " *Link.*" * column.is_link
    return f"{shorten(text)}{marks}".strip()


def _name_column(column: Column, key: Collection[str]) -> str:
    """The name, bold in a key, with its type unless the name says it."""
    usual = next(kind for name, kind in _USUAL_TYPES.items() if re.search(name, column.name))
    name = f"**{column.name}**" if column.name in key else column.name
    return name if usual == column.sql_type else f"{name} ({column.sql_type})"


def shorten(text: str) -> str:
    """Without what the page says of all times and dates."""
    return re.sub(r", (UTC|in the account's time zone)(?=[.;,])", "", text)


def marts() -> str:
    """Every mart with its columns and the questions that it answers."""
    keys = {
        test.relation: test.key
        for test in ModelSettings().list_nodes()
        if test.is_test and test.key
    }
    history = described("history")
    models = [*described("marts"), *history]
    return _render(
        "marts.md",
        marts=described("marts"),
        history=[table for table in history if "valid_from" not in table.columns],
        versions=[table for table in history if "valid_from" in table.columns],
        rows=describe_columns(models, keys),
        describe=describe_model,
        definitions=definitions(),
        metrics=list(metrics().values()),
    )


def described(schema: str) -> list[Node]:
    """All models of a schema, by area in the order of the source tables, then by name."""
    areas = list(dict.fromkeys(table.area for table in TABLES.values()))
    found = [
        node for node in ModelSettings().list_nodes() if node.schema == schema and not node.is_test
    ]
    return sorted(found, key=lambda node: (areas.index(node.meta["area"]), node.table))


def definitions() -> dict[str, str]:
    """Name → what it means, in the order of the declaration."""
    declared = (PROJECT / "models" / "definitions.md").read_text(encoding="utf-8")
    return {
        name: " ".join(text.split())
        for name, text in re.findall(r"{% docs (\w+) %}(.+?){% enddocs %}", declared, re.DOTALL)
    }


#: Descriptions of marts with more words than this are written once, and other marts link to them.
_FEW_WORDS = 5
#: Ending of a column → the ending of the column that means the same over another time.
_TWINS = {"_28d": "_7d", "_year_before": "_before"}
_DAY = "Day in the account's time zone."
_MACHINES = "machine opens: see “Gaps in the data” in docs/marts.md"

#: Columns as written on the page, and their description.
Rows = list[tuple[list[str], str]]


def describe_columns(
    models: Iterable[Node], keys: Mapping[str, Collection[str]]
) -> dict[str, Rows]:
    """The rows of each relation, without the account: neighbours with the same description
    together, and a description that an earlier relation has as a link to it."""
    first: dict[tuple[str, str], Node] = {}
    rows = {}
    for model in models:
        columns = list_columns(model.columns)
        texts = {}
        for name, _, text in columns:
            shown = _shorten_description(name, text)
            earlier = first.setdefault((name, text), model)
            if earlier is not model and _is_long(shown):
                shown = f"As in [{earlier.table}](#{earlier.schema}{earlier.table})."
            personal = " *Personal.*" * is_personal(model.schema, model.table, name)
            link = " *Link.*" * is_link(model.schema, model.table, name)
            texts[name] = f"{shown}{personal}{link}".strip()
        names = {
            name: (f"**{name}**" if name in keys.get(model.relation, ()) else name)
            + (f", {twin}" if twin else "")
            for name, twin, _ in columns
        }
        rows[model.relation] = [
            ([names[name] for name in members], text)
            for text, members in groupby(texts, key=texts.__getitem__)
        ]
    return rows


def _is_long(text: str) -> bool:
    """Whether a link is shorter. Columns named in the text are those of its own mart."""
    return len(text.split()) > _FEW_WORDS and "NULL like" not in text


def _shorten_description(name: str, text: str) -> str:
    """Without what the page says once: definitions, time zones, and what an id or a day is."""
    if text in (_DAY, f"Id of the {name.removesuffix('_id')} at the service."):
        return ""
    for definition in definitions().values():
        if text.startswith(definition):
            return f"[Rate](#rate-definitions).{text.removeprefix(definition)}"
    return link_gaps(shorten(text))


def link_gaps(text: str) -> str:
    """With a link to the section that explains opens by machines."""
    return text.replace(_MACHINES, "[machine opens](#gaps-in-the-data)")


def list_columns(columns: Mapping[str, str]) -> list[tuple[str, str, str]]:
    """(column, its twin over another time or empty, description), without the account."""
    twins = {
        name.replace(ending, described): name
        for name in columns
        for ending, described in _TWINS.items()
        if ending in name and name.replace(ending, described) in columns
    }
    return [
        (name, twins.get(name, ""), text)
        for name, text in columns.items()
        if name != "account" and name not in twins.values()
    ]


def grain(model: Node) -> str:
    """The sentence of its description that begins with "One row per"."""
    found = re.search(r"(?:^|(?<=\s))One row per [^.]+\.", model.description)
    return found[0] if found else ""


def describe_model(model: Node) -> str:
    """The description, with that sentence in italics."""
    text = link_gaps(model.description)
    return text.replace(grain(model), f"*{grain(model)}*")


def configuration() -> str:
    """The page with the table of the optional settings between its marks."""
    rows = [
        f"| `{variable}` | {f'`{default}`' if default else ''} | {each.metadata['doc']} |"
        for variable, each in VARIABLES.items()
        for default in [_written_value(each.default)]
    ]
    table = "\n".join(["| setting | default | what it is |", "|---|---|---|", *rows])
    before, rest = CONFIGURATION.read_text(encoding="utf-8").split("<!-- settings -->")
    return (
        f"{before}<!-- settings -->\n{table}\n<!-- /settings "
        f"-->{rest.partition('<!-- /settings -->')[2]}"
    )


def _written_value(value: Any) -> str:
    """The value of a setting, as written in the environment."""
    if isinstance(value, tuple):
        return ",".join(map(str, value))
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, int) and value >= 10**6:
        return f"{value // 10**6}MB" if value % 10**9 else f"{value // 10**9}GB"
    return "" if value is None else str(value)


_IN_DOCS = {
    f"{made.__name__.replace('_', '-')}.md": made
    for made in (operations, sandbox, how_sure, tables, marts, json_output)
}
PAGES: dict[Path, Callable[[], str]] = {DOCS / name: made for name, made in _IN_DOCS.items()}
PAGES |= {DOCS / "json-output.schema.json": json_schema, CONFIGURATION: configuration}


def _declared(name: str) -> dict[str, Any]:
    return tomllib.loads((DOCS / "templates" / f"{name}.toml").read_text(encoding="utf-8"))


def _render(template: str, **values: object) -> str:
    environment = (
        # Markdown for our own repository, from our own declarations: nothing to escape
        jinja2.Environment(
            loader=jinja2.FileSystemLoader(DOCS / "templates"),
            undefined=jinja2.StrictUndefined,
            autoescape=False,  # noqa: S701
            keep_trailing_newline=True,
        )
    )
    environment.filters |= {
        "grouped": group_fields,
        "gaps": link_gaps,
        "code": lambda text: f"`{text}`",
        "cell": lambda text: text.replace("|", "\\|").replace("\n", " "),
    }
    return environment.get_template(template).render(values).rstrip() + "\n"


def main() -> None:
    for page, render in PAGES.items():
        page.write_text(render(), encoding="utf-8")
        print(f"wrote {page.relative_to(DOCS.parent)}")


if __name__ == "__main__":
    main()
