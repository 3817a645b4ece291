"""Tables that commands print. Not here: templates (`texts`), which take Jinja to import."""

from collections.abc import Iterable, Sequence

from rich.table import Table


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
