"""Text templates and tables that commands print."""

from collections.abc import Callable, Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, StrictUndefined, Template
from rich.table import Table


@cache
def text_template(
    module: str, finalize: Callable[[Any], Any] | None = None, **filters: Callable[..., Any]
) -> Template:
    """The template next to the module's file, with the same name. Undefined names in it are
    errors."""
    environment = Environment(  # noqa: S701 (plain text)
        undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, finalize=finalize
    )
    environment.filters |= {"number": "{:,}".format, **filters}
    return environment.from_string(Path(module).with_suffix(".jinja").read_text(encoding="utf-8"))


def make_grid(title: str, columns: str, rows: Iterable[Sequence[str]]) -> Table:
    """A table with these columns, like `table, >rows`; a `>` aligns a column to the right."""
    table = Table(
        title=title,
        title_justify="left",
        title_style="bold",
        box=None,
        header_style="dim",
        pad_edge=False,
    )
    for column in columns.split(", "):
        name = column.removeprefix(">")
        table.add_column(name, justify="left" if name == column else "right", overflow="fold")
    for row in rows:
        table.add_row(*row)
    return table
