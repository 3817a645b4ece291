"""The models and macros that are written from declarations (`python -m warehouse.model_files`); a test fails
when they are stale.

`models/staging`: a view per `source` table that a model reads, with plain names for the columns of the
loading, and without `extra`. `models/history/versions`: the tables whose every version is kept.
`macros/rate_parts.sql`: the rates. And, out of the models that are there then, `lineage.json`: which of their
columns are personal."""

import json
import re
import tempfile
import textwrap
from collections.abc import Iterator
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any

import duckdb
import jinja2

from warehouse.connection import connect
from warehouse.dbt_project import metrics
from warehouse.lineage import follow, listed, made_of
from warehouse.masking import LINEAGE
from warehouse.models import ModelSettings, build
from warehouse.schema import columns_of, ensure_schema
from warehouse.tables import SYNC_TABLES, TABLES, Column, Table

MODELS = Path(__file__).parent / "models"
_STAGING, _VERSIONS, _RATES = "staging", "history/versions", "../macros/rate_parts.sql"
#: Their changes and deletions cannot be had later.
_VERSIONED = ("contacts", "lists", "campaigns", "goals", "webhooks", "users")

_PLAIN_NAMES = {"_first_seen_at": "first_seen_at", "_changed_at": "changed_at", "_deleted_at": "deleted_at"}


def render() -> dict[str, str]:
    """Path below `MODELS` → text."""
    texts = (
        path.read_text(encoding="utf-8") for path in MODELS.rglob("*.sql") if path.parent.name != _STAGING
    )
    named = {name for text in texts for name in re.findall(r"'stg_(\w+)'", text)}
    read = [table for table in TABLES.values() if table.name in named]
    files = {f"{_STAGING}/stg_{table.name}.sql": _filled("view.sql", table=table) for table in read}
    for area, tables in groupby(read, key=lambda table: table.area):
        files[f"{_STAGING}/{area}.yml"] = _filled("views.yml", tables=list(tables))
    files[f"{_STAGING}/sources.yml"] = _filled("sources.yml", tables=TABLES.values(), sync_tables=SYNC_TABLES)
    versioned = [TABLES[name] for name in _VERSIONED]
    files |= {
        f"{_VERSIONS}/history_{table.name}.sql": _filled("versions.sql", table=table) for table in versioned
    }
    files[_RATES] = _filled("rates.sql", metrics=metrics().values())
    return files | {f"{_VERSIONS}/versions.yml": _filled("versions.yml", tables=versioned)}


def found() -> dict[str, str]:
    """What is there now, in the same form."""
    paths = [
        path.relative_to(MODELS).as_posix()
        for folder in (_STAGING, _VERSIONS)
        for path in (MODELS / folder).iterdir()
    ]
    return {path: (MODELS / path).read_text(encoding="utf-8") for path in (*paths, _RATES)}


def columns(table: Table) -> Iterator[tuple[Column, str]]:
    """The columns of the table's view: (column of the table, name in the view)."""
    for column in table.columns:
        if column.name in _PLAIN_NAMES:
            yield column, _PLAIN_NAMES[column.name]
        elif column.name != "extra" and not column.name.startswith("_"):
            yield column, column.name


def _filled(template: str, **values: object) -> str:
    """The templates have brackets of their own, since braces are dbt's."""
    wrapped = partial(textwrap.fill, width=96, break_long_words=False, break_on_hyphens=False)
    environment = jinja2.Environment(  # SQL and YAML of our own declarations: nothing to escape
        loader=jinja2.FileSystemLoader(Path(__file__).parent / "templates"),
        undefined=jinja2.StrictUndefined,
        autoescape=False,  # noqa: S701
        keep_trailing_newline=True,
        trim_blocks=True,
        block_start_string="<%",
        block_end_string="%>",
        variable_start_string="<<",
        variable_end_string=">>",
    )
    environment.filters |= {
        "json": lambda text: wrapped(json.dumps(text, ensure_ascii=False), subsequent_indent=" " * 6),
        "listed": lambda names: wrapped(", ".join(f"'{name}'" for name in names), subsequent_indent=" " * 4),
    }
    return environment.get_template(template).render(values, columns=columns)


def derive_lineage(path: Path) -> dict[str, Any]:
    """What `lineage.json` holds. `path`: where a warehouse without rows may be made."""
    with connect(path) as connection:
        ensure_schema(connection)
    build(path)
    models = [node for node in ModelSettings().nodes() if not node.is_test]
    with duckdb.connect(str(path), read_only=True) as connection:
        types = columns_of(connection)
    return {
        "columns": listed(follow(models, types)),
        "made_of": listed(made_of(models, types)),
        "small_groups": {
            node.relation: node.meta["small_groups"] for node in models if "small_groups" in node.meta
        },
    }


def lineage_json(path: Path) -> str:
    """The text of `lineage.json`: a line per table, so that a change is seen."""
    parts = []
    for part, entries in derive_lineage(path).items():
        lines = ",\n".join(f"  {json.dumps(name)}: {json.dumps(entry)}" for name, entry in entries.items())
        parts.append(f" {json.dumps(part)}: {{\n{lines}\n }}")
    return "{\n" + ",\n".join(parts) + "\n}\n"


if __name__ == "__main__":
    files = render()
    for name in found().keys() - files.keys():  # of tables that are gone
        (MODELS / name).unlink()
    for name, text in files.items():
        (MODELS / name).write_text(text, encoding="utf-8")
    with tempfile.TemporaryDirectory() as made:
        LINEAGE.write_text(lineage_json(Path(made) / "warehouse.duckdb"), encoding="utf-8")
