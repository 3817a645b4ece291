"""Run one SELECT on what is published, and show its rows.

Not here: what keeps a query to the tables (`warehouse.published_query`)."""

import csv as comma_separated
import datetime as dt
import io
import math
import re
import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any

import click
import duckdb

from home import exits, interrupts
from home.door import open_warehouse, scratch
from home.exits import WrongUse
from home.formatting import plural
from home.options import Option
from home.settings import Settings
from pipelines.commands import Arguments, command, print_error
from pipelines.publishing import model_settings
from warehouse.connection import MEMORY_LIMIT
from warehouse.disk import write_file
from warehouse.publish import published_path, reading
from warehouse.published_query import NoAnswer, encode, opened, selecting
from warehouse.sql import rows

#: Rows of a table on the terminal; its last line says how many more there are. And its width elsewhere.
_SHOWN, _WIDTH = 100, 10_000
_BATCH = 10_000
_ZONES = """
select account, (select max(name) from pg_timezone_names() where name = business.timezone)
from source.business where _deleted_at is null"""
_NOT_PUBLISHED = (
    "nothing is published yet: this reads the warehouse itself, with all personal data, and a sync waits "
    "until the query ends; a whole `marketing-sync sync` builds the marts and publishes a copy"
)
#: What a sheet of Excel holds: rows below the header, letters of a cell, digits of a number, and
#: years, without that of infinity.
_ROWS, _LETTERS, _DIGITS, _YEARS = 1_048_575, 32_767, 15, range(1901, 9999)

#: Characters that no workbook may have.
_CONTROLS = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f]")


@command(
    Option(
        "sql",
        "the query; - reads it from standard input, a name that ends in .sql from that file",
        str,
        metavar="[QUERY]",
        is_positional=True,
    ),
    Option("csv", "print CSV; lists and structures in it are JSON"),
    Option("json", "print a JSON array with an object for each row"),
    Option("excel", "write an Excel workbook; times in it are the account's", str, Path, metavar="FILE"),
)
def query(arguments: Arguments, settings: Settings) -> int:
    """Read-only, whatever it says. Times are in the zone of the accounts, in UTC where they have several."""
    sql = _query(arguments.sql)
    if sum(map(bool, (arguments.csv, arguments.json, arguments.excel))) > 1:
        raise click.UsageError("choose one of --csv, --json and --excel")
    if arguments.excel and arguments.excel.suffix.lower() != ".xlsx":
        raise click.UsageError(f"{arguments.excel} is no name of a workbook: let it end in .xlsx")
    with (
        interrupts.end_quietly(),
        readable(settings) as (connection, zone),
        selecting(connection, sql, MEMORY_LIMIT),
    ):
        if arguments.csv or arguments.json or arguments.excel:
            _write(connection.execute(sql), arguments, zone)
        else:
            width = shutil.get_terminal_size().columns if sys.stdout.isatty() else _WIDTH
            connection.sql(sql).show(max_width=width, max_rows=_SHOWN)
    return exits.DONE


def _write(found: duckdb.DuckDBPyConnection, arguments: Arguments, zone: str) -> None:
    """Its rows, in the form that was chosen."""
    columns = [(str(name), str(sql_type)) for name, sql_type, *_ in found.description or ()]
    names = [name for name, _ in columns]
    if arguments.csv:
        _print_csv(names, _rows(found))
    elif arguments.json:
        _print_json(names, _rows(found))
    else:
        headings = [f"{name} ({zone})" if "WITH TIME ZONE" in kind else name for name, kind in columns]
        print(_write_excel(arguments.excel, headings, _rows(found)))


def _query(given: str | None) -> str:
    """Its text."""
    if not given:
        raise click.UsageError('write a query, like marketing-sync query "from marts.list_performance"')
    if given == "-":
        return sys.stdin.read()
    path = Path(given)
    if path.suffix == ".sql" and not given.strip().partition(" ")[2]:
        try:
            return path.read_text(encoding="utf-8-sig")
        except (OSError, UnicodeDecodeError) as problem:
            raise WrongUse(f"{path} cannot be read as a query: {problem}") from None
    return given


@contextmanager
def readable(settings: Settings) -> Iterator[tuple[duckdb.DuckDBPyConnection, str]]:
    """What is published, else the warehouse, sealed; and the zone that its times are in. WrongUse when what
    is asked of it cannot be answered."""
    path = published_path(settings.home)
    try:
        if not path.exists():
            with open_warehouse(settings, read_only=True) as connection:
                zone = _zone(connection, settings)
            print_error(_NOT_PUBLISHED)
            with open_warehouse(settings, is_sealed=True, zone=zone) as connection:
                yield connection, zone
            return
        with reading(path) as connection:
            zone = _zone(connection, settings)
        with scratch(settings.home, "queries") as workspace:
            limits = {"memory_limit": MEMORY_LIMIT, "temp_directory": str(workspace.folder())}
            with opened(path, allows_personal=True, zone=zone, **limits) as (connection, _):
                yield connection, zone
    except NoAnswer as problem:
        raise WrongUse(str(problem)) from None


def _zone(connection: duckdb.DuckDBPyConnection, settings: Settings) -> str:
    """The one that all accounts have, as the marts take it; UTC where there are several."""
    declared = model_settings(settings)
    zones = {
        declared.zones.get(account) or own or declared.timezone for account, own in rows(connection, _ZONES)
    }
    return zones.pop() if len(zones) == 1 else "UTC"


def _rows(found: duckdb.DuckDBPyConnection) -> Iterator[Sequence[Any]]:
    while batch := found.fetchmany(_BATCH):
        yield from batch


def _print_csv(names: Sequence[str], found: Iterator[Sequence[Any]]) -> None:
    writer = comma_separated.writer(sys.stdout, lineterminator="\n")
    writer.writerow(names)
    writer.writerows(map(_plain, row) for row in found)


def _plain(value: Any) -> Any:
    """What CSV and Excel have no form for is JSON."""
    if isinstance(value, bool):
        return str(value).lower()
    return encode(value).decode() if isinstance(value, list | tuple | dict) else value


def _print_json(names: Sequence[str], found: Iterator[Sequence[Any]]) -> None:
    if twice := {name for name in names if names.count(name) > 1}:
        raise WrongUse(f"two columns are called {', '.join(sorted(twice))}: give one another name with AS")
    before = "[\n"
    for row in found:
        sys.stdout.write(before + encode(dict(zip(names, row, strict=True))).decode())
        before = ",\n"
    print("\n]" if before == ",\n" else "[]")


def _write_excel(path: Path, headings: Sequence[str], found: Iterator[Sequence[Any]]) -> str:
    """Returns what was written, in words."""
    from openpyxl import Workbook  # takes half a second
    from openpyxl.cell import WriteOnlyCell

    book = Workbook(write_only=True)
    sheet = book.create_sheet("query")
    count = cut = 0

    def cell(value: Any) -> Any:
        nonlocal cut
        value = _of_excel(value)
        if not isinstance(value, str):
            return value
        made = WriteOnlyCell(sheet)
        cut += len(value) > _LETTERS
        made.value, made.data_type = value[:_LETTERS], "s"  # also one that looks like a formula
        return made

    sheet.append([cell(heading) for heading in headings])
    for count, row in enumerate(found, start=1):
        if count > _ROWS:
            raise WrongUse(f"a sheet holds {_ROWS:,} rows: let the query give fewer, or take --csv")
        sheet.append([cell(value) for value in row])
    written = io.BytesIO()
    book.save(written)
    write_file(path, written.getvalue())
    shortened = f", {plural(cut, 'text')} cut after {_LETTERS:,} letters" if cut else ""
    return f"{path}: {plural(count, 'row')}{shortened}"


def _of_excel(value: Any) -> Any:
    """A value that a cell holds as it is: numbers of so many digits, times of these years, without their
    zone; text of all others."""
    if isinstance(value, dt.datetime | dt.date) and value.year in _YEARS:
        return value.replace(tzinfo=None) if isinstance(value, dt.datetime) else value
    if isinstance(value, bool | dt.time | dt.timedelta | None):
        return value
    if isinstance(value, int | float | Decimal) and math.isfinite(value) and len(str(int(value))) <= _DIGITS:
        return value
    value = _plain(value)
    return _CONTROLS.sub("", value if isinstance(value, str) else str(value))
