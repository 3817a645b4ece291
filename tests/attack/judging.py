"""What is left behind by an attacked command, against what is left when nobody attacks it."""

import re
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import duckdb

from tests.attack.stage import KEY, Ended

SCHEMAS = ("source", "history", "marts")
Columns = set[tuple[str, str]]
Row = tuple[Any, ...]
#: A name of a file with what differs from run to run taken out.
_OWN = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|[0-9a-f]{8,}|\d{8}T\d+Z|\d+")
#: Keyed by the days that were asked for, which may differ.
_UNJUDGED = ("source.sentiment_totals",)


@dataclass
class Verdict:
    """Rows and effects, not tables; `notes` say where."""

    lost: int = 0
    duplicated: int = 0
    wrong_deletions: int = 0
    hangs: int = 0
    notes: list[str] = field(default_factory=list)

    @property
    def is_clean(self) -> bool:
        return not self.notes

    def compare(self, what: str, wanted: Counter[Any], found: Counter[Any]) -> None:
        missing, surplus = wanted - found, found - wanted
        self.lost += missing.total()
        self.duplicated += surplus.total()
        if missing or surplus:
            shown = [*(f"- {row}" for row in list(missing)[:2]), *(f"+ {row}" for row in list(surplus)[:2])]
            self.notes.append(
                f"{what}: {missing.total()} missing, {surplus.total()} surplus: {' '.join(shown)[:600]}"
            )


def _tables(connection: duckdb.DuckDBPyConnection) -> dict[str, list[str]]:
    found = connection.execute(
        "select schema_name || '.' || table_name, list(column_name order by column_index) from "
        "duckdb_columns() "
        f"where database_name = current_database() and schema_name in {SCHEMAS} group by 1 order by 1"
    ).fetchall()
    return {table: columns for table, columns in found if table not in _UNJUDGED}


def rows(path: Path, left_out: Columns) -> dict[str, Counter[Row]]:
    """Rows of the tables that people read, without columns that differ between runs; {} without a file."""
    if not path.exists():
        return {}
    with duckdb.connect(str(path), read_only=True) as connection:
        found = {}
        for table, columns in _tables(connection).items():
            schema, _, name = table.partition(".")
            kept = [_shown(column) for column in columns if (table, column) not in left_out]
            sql = f'select {", ".join(kept) or "0"} from {schema}."{name}"'
            found[table] = Counter(tuple(map(str, row)) for row in connection.execute(sql).fetchall())
        return found


def _shown(column: str) -> str:
    return f'"{column}" is null' if column == "_deleted_at" else f'"{column}"'


def differing_columns(one: Path, other: Path) -> Columns:
    """Columns whose values differ between two runs that nobody attacked: moments, ids of runs."""
    values = [_column_values(path) for path in (one, other)]
    return {key for key in values[0].keys() | values[1].keys() if values[0].get(key) != values[1].get(key)}


def _column_values(path: Path) -> dict[tuple[str, str], Any]:
    with duckdb.connect(str(path), read_only=True) as connection:
        return {
            (table, column): connection.execute(
                f"select count(*), sum(hash({_shown(column)}::varchar)) from "
                f'{table.partition(".")[0]}."{table.partition(".")[2]}"'
            ).fetchall()
            for table, columns in _tables(connection).items()
            for column in columns
        }


def names(home: Path) -> Counter[str]:
    """The kinds of files of a home, without numbers and dates. SQLite's logs belong to their database."""
    files = (str(path.relative_to(home)) for path in home.rglob("*") if path.is_file())
    return Counter(_OWN.sub("#", name) for name in files if not name.endswith((".db-shm", ".db-wal")))


def check_words(verdict: Verdict, which: str, ended: Ended, allowed: tuple[int, ...]) -> None:
    """Exit code and what was said."""
    tail = ended.text[-700:]
    if ended.code is None:
        verdict.hangs += 1
        verdict.notes.append(f"{which}: hung: {ended.text[-3000:]}")
    elif ended.code not in allowed:
        verdict.notes.append(f"{which}: exit code {ended.code}: {tail}")
    for bad in ("Traceback (most recent", "something unexpected", KEY):
        if bad in ended.text:
            verdict.notes.append(f"{which}: says {bad!r}: {tail}")
