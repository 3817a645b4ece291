"""dbt over models of the user's, in the process that `own_models` starts for it: one event a line, as JSON.

It works in a folder with a project and a copy of the warehouse, and is told by a line what to build. Whatever
its SQL tries, the connection reaches no other file and no network, and Python models do not run. Not here:
laying out the folder, limits of time, what becomes of the tables (`own_models`)."""

import json
from collections.abc import Callable, Collection, Mapping
from typing import Any

import duckdb
import msgspec
from dbt.adapters.duckdb.environments import Environment
from dbt.cli.main import dbtRunner
from dbt.exceptions import DbtRuntimeError  # type: ignore[attr-defined]  # declared in a package of which dbt is made

from warehouse.child import other_side
from warehouse.connection import SEAL, bounded_memory
from warehouse.dbt_project import QUIET, Node
from warehouse.duckdb_errors import discreet
from warehouse.models import Outcome, Status

#: The name of the project around the user's files.
_PACKAGE = "own"
_OF_DBT = ("dbt", "dbt_duckdb")
_BUILT = ("model", "seed", "snapshot")
_STATUS = {"success": Status.OK, "pass": Status.OK, "warn": Status.WARNED, "skipped": Status.SKIPPED}
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


def names_of(manifest: Any) -> dict[str, str]:
    """Id of a node or source → relation."""
    names = {unique_id: f"{node.schema}.{node.alias}" for unique_id, node in manifest.nodes.items()}
    return names | {
        unique_id: f"{node.source_name}.{node.name}" for unique_id, node in manifest.sources.items()
    }


def described(node: Any, names: Mapping[str, str], first: str = "", later: str = "") -> Node:
    """A node of dbt's with its compiled SQL. Of tests, generic ones at a model are known."""
    is_test, config, columns = str(node.resource_type) == "test", node.config, node.columns
    about = node.attached_node if is_test else node.unique_id
    key = _proved_key(node) if is_test else config.unique_key
    return Node(
        name=node.name,
        kind=config.materialized,
        model=about.rpartition(".")[2],
        relation=names[about],
        description=_in_a_line(node.description),
        sql=_without_database(first),
        needs=tuple(dict.fromkeys(names[needed] for needed in getattr(node.depends_on, "nodes", ()))),
        later_sql=_without_database(later),
        key=(key,) if isinstance(key, str) else tuple(key or ()),
        is_kept=not is_test and config.full_refresh is False,
        is_warning=is_test and config.severity.lower() == "warn",
        columns={name: _in_a_line(column.description) for name, column in columns.items()},
        meta=config.meta,
        declared={name: each.meta["personal"] for name, each in columns.items() if "personal" in each.meta},
    )


def _proved_key(test: Any) -> list[str]:
    """The columns of which a test proves that they identify a row."""
    is_key = test.test_metadata.name == "key" and not test.config.where
    return list(test.test_metadata.kwargs["columns"]) if is_key else []


def _in_a_line(description: str) -> str:
    return " ".join(description.split())


def _without_database(sql: str) -> str:
    """Relations by schema and table: the file may have any name."""
    return sql.replace('"warehouse".', "").strip().rstrip(";")


class _Project:
    """The user's part of what dbt has read."""

    def __init__(self, manifest: Any) -> None:
        self.manifest, self._relations = manifest, names_of(manifest)
        parts = {**manifest.nodes, **manifest.unit_tests}
        self.nodes = {unique_id: node for unique_id, node in parts.items() if node.package_name == _PACKAGE}
        self._models = {each: node for each, node in self.nodes.items() if str(node.resource_type) in _BUILT}
        #: name → relation
        self.models = {node.name: self._relations[each] for each, node in self._models.items()}

    def chosen(self, names: Collection[str]) -> list[str]:
        """All, or the models of these names with what tests them."""
        wanted = {each for each, node in self._models.items() if node.name in names}
        return [
            each
            for each in self.nodes
            if not names or each in wanted or (each not in self._models and wanted & self._needs(each))
        ]

    def _needs(self, unique_id: str) -> set[str]:
        return set(getattr(self.nodes[unique_id].depends_on, "nodes", ()))  # a seed has none

    def behind(self, failed: Collection[str]) -> set[str]:
        """What depends on these, directly or not."""
        found, before = set(failed), 0
        while len(found) > before:
            before = len(found)
            found |= {each for each in self.nodes if found & self._needs(each)}
        return found.difference(failed)

    def overridden(self) -> str:
        """What is wrong with macros of theirs that stand in for dbt's, and packages that run SQL by
        themselves: nobody could say what they make; empty when nothing does."""
        for node in self.manifest.nodes.values():
            if str(node.resource_type) == "operation":
                return f"the package {node.package_name} has {', '.join(node.tags)}: leave it out"
        macros = self.manifest.macros.values()
        of_dbt = {macro.name for macro in macros if macro.package_name in _OF_DBT}
        for macro in macros:
            is_theirs = macro.package_name == _PACKAGE and macro.original_file_path.startswith("macros/")
            names = {macro.name, macro.name.rpartition("__")[2]}
            if is_theirs and (macro.name.startswith("materialization_") or of_dbt & names):
                return (
                    f"{macro.original_file_path}: the macro {macro.name} stands in for one of dbt's: give it "
                    "another name"
                )
        return ""

    def described(self, unique_id: str) -> Node:
        """Without SQL where that does not tell what is in the table."""
        node = self.nodes[unique_id]
        if unique_id in self._models:
            sql = "" if self._is_opaque(node) else getattr(node, "compiled_code", None)
            return described(node, self._relations, sql or "")
        about = getattr(node, "attached_node", None) or next(iter(self._needs(unique_id)), unique_id)
        description = " ".join(node.description.split())
        relation = self._relations.get(about, "")
        return Node(node.name, "test", about.rpartition(".")[2], relation, description, "", ())

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
                texts += [] if macro.package_name in _OF_DBT else [macro.macro_sql]
        asks = seen & {"macro.dbt.run_query", "macro.dbt.statement"}
        return bool(asks) or any("adapter" in text for text in texts)

    def tell(self, event: Any, send: Send) -> None:
        """Send those of dbt's events that count."""
        if event.info.name not in ("NodeStart", "NodeFinished"):
            return
        unique_id = event.data.node_info.unique_id
        node = self.described(unique_id)
        if event.info.name == "NodeStart":
            send({"begins": unique_id, "node": node})
            return
        found = event.data.run_result
        status = _STATUS.get(found.status, Status.FAILED)
        message = "" if status is Status.OK else _reason(found.message or "")
        failures = found.num_failures or 0 if node.is_test else 0
        send({"ended": unique_id, "outcome": Outcome(node, status, found.execution_time, failures, message)})


def _reason(message: str) -> str:
    """What dbt says of a model behind the line that names it."""
    lines = [line.strip() for line in message.strip().splitlines() if line.strip()]
    return discreet(lines[1] if len(lines) > 1 and " in " in lines[0] else " ".join(lines))


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
    """`order`: names, ids of what is known and of what of it failed, variables, whether incremental models
    begin anew."""
    options = [*QUIET, "--project-dir", ".", "--profiles-dir", ".", "--vars", json.dumps(order["variables"])]
    parsed = dbtRunner().invoke(["parse", *options])
    if not parsed.success:
        send({"problem": str(parsed.exception), "file": _file_at_hand(parsed.exception)})
        return
    project = _Project(parsed.result)
    if overridden := project.overridden():
        send({"problem": overridden, "file": ""})
        return
    chosen, lost = project.chosen(order["names"]), project.behind(order["failed"])
    send({"total": len(chosen), "models": project.models})
    for each in lost.intersection(chosen):
        send({"ended": each, "outcome": Outcome(project.described(each), Status.SKIPPED)})
    if left := [each for each in chosen if each not in lost.union(order["known"])]:
        selection = ["fqn:" + ".".join(project.nodes[each].fqn) for each in left]
        words = ["build", "--select", *selection, "--indirect-selection", "empty"]
        if order["is_full"]:
            words.append("--full-refresh")
        runner = dbtRunner(project.manifest, callbacks=[lambda event: project.tell(event, send)])
        ran = runner.invoke([*words, *options])
        if ran.result is None:
            send({"problem": str(ran.exception), "file": ""})
            return
    send({"over": True})


if __name__ == "__main__":
    lines, write = other_side()
    wanted = json.loads(next(lines))
    _lock_down()
    memory = wanted["variables"]["own_memory"]
    ((bytes_of,),) = duckdb.execute("select parse_formatted_bytes(?)", [memory]).fetchall()
    with bounded_memory(bytes_of + _MORE_BYTES):
        _build(wanted, lambda event: write(msgspec.json.encode(event, enc_hook=str).decode()))
