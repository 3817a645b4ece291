"""The rows of one SELECT on the warehouse. It runs in a process of its own, which can neither write nor reach
anything but the tables, and is ended at its limits of time and memory. Not here: files (`files`), what
columns mean (`columns`)."""

import json
import sys
from pathlib import Path

import duckdb
import pyarrow as pa

from home.door import open_warehouse, scratch
from home.settings import Settings
from warehouse.child import START_S, Child, Ended, Silent, other_side
from warehouse.connection import bounded_memory, connect
from warehouse.duckdb_errors import is_out_of_memory, query_problem
from warehouse.sql import not_one_select
from write_back.input.files import InputBudget, rows_of_batches
from write_back.input.rows import BATCH, InputError, Rows, shown

#: What the process may take beside what DuckDB counts.
_MORE_BYTES = 1_000_000_000
#: Types whose values would come out as others: -1 for 2^128 - 1, a time without its offset.
_OTHERWISE = ("UHUGEINT", "TIME WITH TIME ZONE")
_LIMITS = {
    Silent: "it takes longer than {seconds:g} s: let it do less, or allow more with MARKETING_QUERY_SECONDS",
    Ended: "it takes more than {memory} of memory: let it do less, or allow more with MARKETING_INPUT_LIMIT",
}


def read_query(settings: Settings, sql: str, zone: str = "UTC") -> Rows:
    """Times without a zone are taken from those of `zone`, as which an input has them, too. They take so many
    seconds, as many bytes as an input may have, and as much memory. Raises InputError, and what
    `warehouse.connection.connect` raises."""
    limit = settings.input_limit
    with (
        open_warehouse(settings, is_sealed=True, memory_limit=None),  # so that the process need not wait
        scratch(settings.home, "queries") as workspace,
        Child(__name__, str(settings.warehouse_path), str(limit), zone, folder=workspace.folder()) as child,
    ):
        target = workspace.file("rows.arrow")
        try:
            child.receive(START_S)
            child.send(json.dumps([sql, str(target)]))
            refusal = json.loads(child.receive(settings.query_seconds))
        except (Silent, Ended) as end:
            reason = _LIMITS[type(end)].format(seconds=settings.query_seconds, memory=_memory(limit))
            raise InputError(f"the query cannot be run: {reason}") from None
        if refusal:
            raise InputError(refusal)
        with pa.ipc.open_stream(target) as batches:
            return rows_of_batches("query", batches.schema, batches, InputBudget("the query's result", limit))


def write_rows(path: Path, limit: int, sql: str, target: Path, zone: str = "UTC") -> str:
    """Why there are none; empty when they are in `target`."""
    with (
        connect(path, is_sealed=True, memory_limit=_memory(limit), zone=zone) as connection,
        bounded_memory(_MORE_BYTES + limit),
    ):
        try:
            if reason := not_one_select(connection, sql):
                return f"the query {reason}"
            budget, found = InputBudget("the query's result", limit), connection.sql(sql)
            for name, kind in zip(found.columns, found.types, strict=True):
                if any(each in str(kind) for each in _OTHERWISE):
                    return f"the query's column {shown(name)} is of the type {kind}: cast it to varchar"
            with (
                found.to_arrow_reader(BATCH) as batches,
                pa.ipc.new_stream(target, batches.schema) as file,
            ):
                for batch in budget.batches(batches):
                    file.write(batch)
        except InputError as problem:
            return str(problem)
        except (duckdb.Error, pa.ArrowException, OSError, MemoryError) as problem:
            reason = (
                _LIMITS[Ended].format(memory=_memory(limit))
                if is_out_of_memory(problem)
                else query_problem(problem)
            )
            return f"the query cannot be run: {reason}"
    return ""


def _memory(limit: int) -> str:
    return f"{limit // 10**6 + 1}MB"


def _serve(path: Path, limit: int, zone: str) -> None:
    lines, send = other_side()
    send("ready")
    for line in lines:
        sql, target = json.loads(line)
        send(json.dumps(write_rows(path, limit, sql, Path(target), zone)))


if __name__ == "__main__":
    _serve(Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3])
