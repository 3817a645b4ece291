"""Tables that commands print. Not here: templates (`texts`), which take Jinja to import."""

import sys
from collections.abc import Iterable, Sequence

from rich.console import Console
from rich.table import Table

_WIDTH = 200  # of output that isn't a terminal


def open_console() -> Console:
    """Standard output, for texts without markup."""
    return Console(highlight=False, markup=False, width=None if sys.stdout.isatty() else _WIDTH)


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
