"""The only module that reaches into dbt: its parsed manifest, its runner in this process, the events that it fires.

`tests/warehouse/test_dbt_internals.py` names the versions that this was written for, and fails when a part of it has moved.
Importing dbt takes seconds, so only what calls it does.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

#: The module that is dbt's command, and the files that `parse` leaves in its target folder: dbt's own form is read faster.
COMMAND, MANIFEST, PARSED = "dbt.cli.main", "manifest.json", "partial_parse.msgpack"

#: Called when a model or test starts: its number, how many there are, and the name of the model ("tests" for tests).
OnNode = Callable[[int, int, str], None]


@dataclass(frozen=True, slots=True)
class Results:
    """dbt's results of a command, one a node; `problem`: what kept it from its end, empty when nothing did."""

    nodes: Sequence[Any] = ()
    problem: str = ""


def read_parsed(path: Path) -> Any:
    """The manifest in dbt's own form."""
    with _quiet():
        from dbt.contracts.graph.manifest import Manifest

        return Manifest.from_msgpack(path.read_bytes())


def invoke(manifest: Any, words: Sequence[str], environment: Mapping[str, str], on_node: OnNode | None = None) -> Results:
    """Run a command of dbt in this process. `environment`: what profiles and models read."""
    with _quiet(), _environment(environment):
        from dbt.adapters.duckdb.connections import DuckDBConnectionManager
        from dbt.cli.main import dbtRunner

        try:
            result = dbtRunner(manifest, [_listener(on_node)] if on_node else []).invoke([*words])
        finally:
            DuckDBConnectionManager.close_all_connections()  # type: ignore[no-untyped-call]
    if isinstance(result.exception, KeyboardInterrupt):
        raise result.exception
    if result.exception is not None:
        return Results(problem=str(result.exception) or type(result.exception).__name__)
    return Results(getattr(result.result, "results", ()))


def _listener(on_node: OnNode) -> Callable[[Any], None]:
    def listen(event: Any) -> None:
        if event.info.name == "LogStartLine":
            node = event.data.node_info
            on_node(event.data.index, event.data.total, "tests" if node.resource_type == "test" else node.node_name)

    return listen


@contextmanager
def _quiet() -> Iterator[None]:
    """Without the warnings of dbt's libraries."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@contextmanager
def _environment(values: Mapping[str, str]) -> Iterator[None]:
    """dbt reads its profile from the environment."""
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, former in before.items():
            if former is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = former
