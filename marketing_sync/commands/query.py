"""Run a SELECT on the published copy.

Not here: what limits a query (`warehouse.sealed_query`), the formats of its rows
(`marketing_sync.query_output`)."""

import shutil
import sys
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import click
import duckdb

from home import exits, interrupts
from home.exits import WrongUse
from home.options import Option
from home.settings import Settings
from marketing_sync.commands import declare_command, print_warning
from marketing_sync.query_output import write_output
from warehouse.disk import open_scratch, published_path, write_file
from warehouse.errors import PublishedLocked
from warehouse.publish import open_published
from warehouse.sealed_query import QueryFailed, QueryLimits, limit_query, seal_connection

_MEMORY_BYTES = 400_000_000
#: The width of a table that isn't printed on a terminal.
_WIDTH = 10_000
_NOT_PUBLISHED = (
    "nothing is published yet: this query reads the warehouse, with all personal data, and a sync "
    "waits until it ends; run `marketing-sync sync` to publish a copy"
)


@declare_command(
    Option(
        "sql",
        "the query, the name of an .sql file, or - for standard input",
        str,
        metavar="[QUERY]",
        is_positional=True,
    ),
    Option("csv", "print CSV; lists and structures in it are JSON"),
    Option("json", "print a JSON array with an object for each row"),
    Option(
        "excel",
        "write an Excel workbook, with times in the account's time zone",
        str,
        Path,
        metavar="FILE",
    ),
    needs_keys=False,
)
def query(settings: Settings, sql: str | None, csv: bool, json: bool, excel: Path | None) -> int:
    """A query can't change anything. Times are in the time zone of the accounts, or in UTC if they
    have several. A query can use up to MARKETING_QUERY_SECONDS and 400 MB of memory."""
    text = _read_sql(sql)
    choices = {"csv": csv, "json": json, "excel": excel}
    forms = [form for form, value in choices.items() if value]
    if len(forms) > 1:
        raise click.UsageError("choose one of --csv, --json and --excel")
    if excel and excel.suffix.lower() != ".xlsx":
        raise click.UsageError(f"{excel} is not a workbook; use a name that ends in .xlsx")
    with interrupts.end_quietly(), open_scratch(settings.home, "queries") as workspace:
        result = workspace.place_file("result")
        report = _write_result(settings, text, result, forms[0] if forms else "table")
        if excel:
            try:
                write_file(excel, result.read_bytes())
            except OSError as error:
                raise WrongUse(
                    f"{excel} cannot be written ({error.strerror}): name another file"
                ) from None
            print(f"{excel}: {report}")
        else:
            with result.open(encoding="utf-8", newline="") as rows:
                shutil.copyfileobj(rows, sys.stdout)
    return exits.DONE


def _write_result(settings: Settings, sql: str, result: Path, form: str) -> str:
    """Run the query and write its rows; returns a message about a workbook."""
    path = published_path(settings.home)
    limits = QueryLimits(
        seconds=settings.query_seconds,
        memory_bytes=_MEMORY_BYTES,
        zone=settings.timezone,
        zones=settings.zones,
        may_quote=True,
    )
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else _WIDTH
    opened = open_published(path, result.parent) if path.exists() else open_unpublished(settings)
    try:
        with opened as connection:
            seal_connection(connection, limits)
            with limit_query(connection, sql, limits):
                return write_output(connection, sql, result, form, width)
    except (QueryFailed, PublishedLocked) as error:
        raise WrongUse(str(error)) from None
    except duckdb.Error as error:
        raise WrongUse(f"{path} cannot be read: {error}") from None


def open_unpublished(settings: Settings) -> AbstractContextManager[Any]:
    """Open the warehouse instead of the published file, with a warning on standard error."""
    # takes half a second to import, and only an unpublished home needs it
    from home.door import open_warehouse

    if settings.warehouse_path.exists():
        print_warning(_NOT_PUBLISHED)
    return open_warehouse(settings, is_unshared=True)


def _read_sql(text: str | None) -> str:
    """The query; `text` is the query itself, `-` or the name of a file."""
    if not text:
        raise click.UsageError(
            'write a query, like marketing-sync query "from marts.list_performance"'
        )
    path = Path(text)
    is_file = path.suffix == ".sql" and " " not in text.strip()
    if not is_file and text != "-":
        return text
    try:
        content = path.read_bytes() if is_file else sys.stdin.buffer.read()
        return content.decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        place = path if is_file else "standard input"
        raise WrongUse(f"{place} cannot be read as a query: {reason}") from None
