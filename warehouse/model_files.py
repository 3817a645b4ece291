"""The models and macros that are written from declarations (`python -m warehouse.model_files`); a test fails when they are stale.

`models/staging`: a view per `source` table that a model reads, with plain names for the columns of the loading, and without `extra`.
`models/history/versions`: the tables whose every version is kept. `macros/rate_parts.sql`: the rates.
"""

import json
import re
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

import jinja2

from warehouse.metrics import metrics
from warehouse.sync_tables import SYNC_TABLES
from warehouse.tables import TABLES, Column, Table

MODELS = Path(__file__).parent / "models"
_STAGING, _VERSIONS, _RATES = "staging", "history/versions", "../macros/rate_parts.sql"
#: Their changes and deletions cannot be had later.
_VERSIONED = ("contacts", "lists", "campaigns", "goals", "webhooks", "users")

_PLAIN_NAMES = {"_first_seen_at": "first_seen_at", "_changed_at": "changed_at", "_deleted_at": "deleted_at"}


def render() -> dict[str, str]:
    """Path below `MODELS` → text."""
    texts = (path.read_text(encoding="utf-8") for path in MODELS.rglob("*.sql") if path.parent.name != _STAGING)
    named = {name for text in texts for name in re.findall(r"'stg_(\w+)'", text)}
    read = [table for table in TABLES.values() if table.name in named]
    files = {f"{_STAGING}/stg_{table.name}.sql": _filled("view.sql", table=table) for table in read}
    for area, tables in groupby(read, key=lambda table: table.area):
        files[f"{_STAGING}/{area}.yml"] = _filled("views.yml", tables=list(tables))
    files[f"{_STAGING}/sources.yml"] = _filled("sources.yml", tables=TABLES.values(), sync_tables=SYNC_TABLES)
    versioned = [TABLES[name] for name in _VERSIONED]
    files |= {f"{_VERSIONS}/history_{table.name}.sql": _filled("versions.sql", table=table) for table in versioned}
    files[_RATES] = _filled("rates.sql", metrics=metrics().values())
    return files | {f"{_VERSIONS}/versions.yml": _filled("versions.yml", tables=versioned)}


def found() -> dict[str, str]:
    """What is there now, in the same form."""
    paths = [path.relative_to(MODELS).as_posix() for folder in (_STAGING, _VERSIONS) for path in (MODELS / folder).iterdir()]
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
        "json": lambda text: json.dumps(text, ensure_ascii=False),
        "listed": lambda names: ", ".join(f"'{name}'" for name in names),
    }
    return environment.get_template(template).render(values, columns=columns)


if __name__ == "__main__":
    files = render()
    for name in found().keys() - files.keys():  # of tables that are gone
        (MODELS / name).unlink()
    for name, text in files.items():
        (MODELS / name).write_text(text, encoding="utf-8")
