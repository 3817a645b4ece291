"""dbt over models of the user's, in the process that `own_models` starts for it: one event a line, as JSON.

It works in a folder with a project and a copy of the warehouse, and is told by a line what to build. Whatever
its SQL tries, the connection reaches no other file and no network, and Python models do not run. Not here:
laying out the folder, limits of time, what becomes of the tables (`own_models`)."""

import json
from collections.abc import Callable, Iterable
from dataclasses import asdict
from typing import Any

import duckdb
from dbt.adapters.duckdb.environments import Environment
from dbt.cli.main import dbtRunner
from dbt.exceptions import DbtRuntimeError  # type: ignore[attr-defined]  # declared in a package of which dbt is made

from warehouse.child import other_side
from warehouse.connection import SEAL, bounded_memory
from warehouse.dbt_project import QUIET, Node, described, names_of

#: The name of the project around the user's files.
_PACKAGE = "own"
_BUILT = ("model", "seed", "snapshot")
#: Beside what DuckDB counts: Python, dbt, and lists that it does not count.
_MORE_BYTES = 1_000_000_000

Send = Callable[[dict[str, Any]], None]


def _lock_down() -> None:
    plain = Environment.initialize_db

    def sealed(*given: Any, **named: Any) -> Any:
        connection = plain(*given, **named)
        for setting in SEAL:
            connection.execute(setting)
        return connection

    def refused(*_: Any, **__: Any) -> None:
        raise DbtRuntimeError("models in Python are not run: write it in SQL")

    Environment.initialize_db = staticmethod(sealed)  # type: ignore[method-assign]
    Environment.run_python_job = staticmethod(refused)  # type: ignore[method-assign]


class _Project:
    """The user's part of what dbt has read."""

    def __init__(self, manifest: Any) -> None:
        self.manifest, self.names = manifest, names_of(manifest)
        parts = {**manifest.nodes, **manifest.unit_tests}
        self.nodes = {unique_id: node for unique_id, node in parts.items() if node.package_name == _PACKAGE}
        self.models = {
            unique_id: node for unique_id, node in self.nodes.items() if str(node.resource_type) in _BUILT
        }

    def chosen(self, names: Iterable[str]) -> list[str]:
        """All, or the models of these names with what tests them."""
        wanted = {unique_id for unique_id, node in self.models.items() if node.name in names}
        if not names:
            return list(self.nodes)
        tests = self.nodes.keys() - self.models.keys()
        return [
            each
            for each in self.nodes
            if each in wanted or (each in tests and wanted & set(self.needs(each)))
        ]

    def needs(self, unique_id: str) -> list[str]:
        return list(getattr(self.nodes[unique_id].depends_on, "nodes", ()))  # a seed has none

    def behind(self, failed: Iterable[str]) -> set[str]:
        """What depends on these, directly or not."""
        found, before = set(failed), 0
        while len(found) > before:
            before = len(found)
            found |= {each for each in self.nodes if found.intersection(self.needs(each))}
        return found - set(failed)

    def overridden(self) -> str:
        """What is wrong with macros of theirs that stand in for dbt's, of which nobody could say what they
        make; empty when none does."""
        macros = self.manifest.macros.values()
        of_dbt = {macro.name for macro in macros if macro.package_name.startswith("dbt")}
        for macro in macros:
            is_theirs = macro.package_name == _PACKAGE and macro.original_file_path.startswith("macros/")
            stands_in = macro.name.startswith("materialization_") or of_dbt & {
                macro.name,
                macro.name.rpartition("__")[2],
            }
            if is_theirs and stands_in:
                return (
                    f"{macro.original_file_path}: the macro {macro.name} stands in for one of "
                    "dbt's: give "
                    "it another name"
                )
        return ""

    def described(self, unique_id: str) -> dict[str, Any]:
        """As a `Node`; without SQL where that does not tell what is in the table."""
        node = self.nodes[unique_id]
        is_test = unique_id not in self.models
        if is_test:
            about = getattr(node, "attached_node", None) or next(iter(self.needs(unique_id)), unique_id)
            relation, model = self.names.get(about, ""), about.rpartition(".")[2]
            return asdict(
                Node(node.name, "test", model, relation, " ".join(node.description.split()), "", ())
            )
        return asdict(
            described(
                node, self.names, "" if self._is_opaque(node) else getattr(node, "compiled_code", None) or ""
            )
        )

    def _is_opaque(self, node: Any) -> bool:
        """Hooks, and queries while it is compiled, bring in what its SQL does not show."""
        if str(node.resource_type) != "model" or node.config.pre_hook or node.config.post_hook:
            return True
        texts, seen, waiting = [node.raw_code], set(), list(node.depends_on.macros)
        while waiting:
            macro = self.manifest.macros.get(waiting.pop())
            if macro is not None and macro.unique_id not in seen:
                seen.add(macro.unique_id)
                waiting += macro.depends_on.macros
                texts += [] if macro.package_name.startswith("dbt") else [macro.macro_sql]
        return bool(seen & {"macro.dbt.run_query", "macro.dbt.statement"}) or any(
            "adapter" in text for text in texts
        )


def _told(project: _Project, send: Send) -> Callable[[Any], None]:
    """What hears dbt's events and sends those that count."""

    def hear(event: Any) -> None:
        kind, data = event.info.name, event.data
        if kind == "NodeStart":
            send({"begins": data.node_info.unique_id, "name": data.node_info.node_name})
        elif kind == "NodeFinished":
            found = data.run_result
            send(
                {
                    "ended": data.node_info.unique_id,
                    "node": project.described(data.node_info.unique_id),
                    "status": found.status,
                    "message": found.message,
                    "failures": found.num_failures,
                    "seconds": found.execution_time,
                }
            )

    return hear


def _file_at_hand(problem: BaseException | None) -> str:
    """Which file dbt was about when it raised: not every message names one."""
    found, step = "", problem.__traceback__ if problem else None
    while step:
        for value in step.tb_frame.f_locals.values():
            for held in (value, getattr(value, "path", None)):
                path = getattr(held, "original_file_path", "")
                found = path if isinstance(path, str) and path else found
        step = step.tb_next
    return found


def _build(order: dict[str, Any], send: Send) -> None:
    """`order`: names, ids of what is done and of what failed, variables, whether incremental models begin
    anew."""
    common = [*QUIET, "--project-dir", ".", "--profiles-dir", ".", "--vars", json.dumps(order["variables"])]
    parsed = dbtRunner().invoke(["parse", *common])
    if not parsed.success:
        send({"problem": str(parsed.exception), "file": _file_at_hand(parsed.exception)})
        return
    project = _Project(parsed.result)
    if overridden := project.overridden():
        send({"problem": overridden})
        return
    chosen = project.chosen(order["names"])
    lost = project.behind(order["failed"])
    left = [each for each in chosen if each not in {*order["done"], *order["failed"], *lost}]
    send(
        {
            "plan": len(chosen),
            "models": {node.name: project.names[each] for each, node in project.models.items()},
        }
    )
    for each in lost.intersection(chosen):
        send(
            {
                "ended": each,
                "node": project.described(each),
                "status": "skipped",
                "message": "",
                "failures": 0,
                "seconds": 0.0,
            }
        )
    if left:
        selection = ["fqn:" + ".".join(project.nodes[each].fqn) for each in left]
        words = [
            "build",
            "--select",
            *selection,
            "--indirect-selection",
            "empty",
            *(["--full-refresh"] if order["is_full"] else []),
        ]
        ran = dbtRunner(project.manifest, callbacks=[_told(project, send)]).invoke([*words, *common])
        if ran.result is None:
            send({"problem": str(ran.exception)})
            return
    send({"over": True})


if __name__ == "__main__":
    lines, write = other_side()
    wanted = json.loads(next(lines))
    _lock_down()
    ((bytes_of,),) = duckdb.execute(
        "select parse_formatted_bytes(?)", [wanted["variables"]["own_memory"]]
    ).fetchall()
    with bounded_memory(bytes_of + _MORE_BYTES):
        _build(wanted, lambda event: write(json.dumps(event, default=str)))
