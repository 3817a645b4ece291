"""Undocumented parts of Dagster that are used are unchanged: look before taking a new version."""

import ast
import inspect
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
import yaml
from dagster._core.storage.event_log import SqliteEventLogStorage

from assets.materialize import DEFERRED, ONE_VERSION, provenance_tags
from home.folder import prepare_home
from pipelines.dagster_internals import DAEMON, KeptOpenEventLog

ROOT = Path(__file__).parents[2]
#: The version that pipelines/dagster_internals.py was written for.
VERSION = "1.13"
#: Module, name, and the parameters that are relied on.
USED: list[tuple[str, str, set[str]]] = [
    ("dagster._core.remote_origin", "RemoteRepositoryOrigin", {"code_location_origin", "repository_name"}),
    ("dagster._core.remote_origin", "RemoteRepositoryOrigin.get_job_origin", {"job_name"}),
    (
        "dagster._core.workspace.load",
        "location_origin_from_module_name",
        {"module_name", "working_directory", "attribute"},
    ),
    ("dagster", "DagsterInstance.create_run_for_job", {"job_def", "remote_job_origin"}),
    ("dagster", "JobDefinition.get_subset", {"asset_selection"}),
    ("dagster._core.definitions.job_base", "InMemoryJob", {"job_def"}),
    (
        "dagster._core.execution.execute_in_process",
        "core_execute_in_process",
        {"run_config", "job", "instance", "output_capturing_enabled", "raise_on_error", "run_tags"},
    ),
    ("dagster._core.storage.event_log", "SqliteEventLogStorage", {"base_dir", "inst_data"}),
    ("dagster._core.storage.event_log", "SqliteEventLogStorage._connect", {"shard"}),
    ("dagster._core.storage.event_log", "SqliteEventLogStorage.delete_events", {"run_id"}),
    ("dagster._core.storage.event_log", "SqliteEventLogStorage.path_for_shard", {"run_id"}),
    ("dagster._core.storage.event_log", "SqlEventLogStorage.index_connection", set()),
    ("dagster._core.storage.runs", "SqlRunStorage.delete_run", {"run_id"}),
    ("dagster._core.remote_origin", "RemoteRepositoryOrigin.get_label", set()),
    ("dagster._core.storage.event_log", "SqliteEventLogStorage._initdb", {"engine"}),
    ("dagster._core.storage.event_log", "SqliteEventLogStorage.conn_string_for_shard", {"shard_name"}),
    (
        "dagster._core.workspace.context",
        "WorkspaceProcessContext",
        {"instance", "workspace_load_target", "version"},
    ),
    ("dagster._core.workspace.load_target", "WorkspaceFileTarget", set()),
    (
        "dagster_webserver.app",
        "create_app_from_workspace_process_context",
        {"workspace_process_context", "live_data_poll_rate"},
    ),
    ("dagster._core.storage.noop_compute_log_manager", "NoOpComputeLogManager", set()),
]


def test_the_version_is_the_one_that_was_looked_at() -> None:
    assert dg.__version__.startswith(f"{VERSION}."), (
        "look through pipelines/dagster_internals.py with the new version, then name it here"
    )


@pytest.mark.parametrize(
    ("module", "name", "parameters"), USED, ids=lambda value: value if isinstance(value, str) else ""
)
def test_what_is_used_has_not_moved(module: str, name: str, parameters: set[str]) -> None:
    found: Any = import_module(module)
    for part in name.split("."):
        found = getattr(found, part)
    assert parameters <= set(inspect.signature(found).parameters)


def test_the_event_log_has_what_the_class_overrides(tmp_path: Path) -> None:
    storage = KeptOpenEventLog(str(tmp_path / "runs"))
    assert hasattr(storage, "_db_lock")
    assert isinstance(storage._initialized_dbs, set)
    storage.dispose()


def test_the_event_log_asks_for_a_table_until_it_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage = KeptOpenEventLog(str(tmp_path / "runs"))
    there = set[str]()
    asked = list[str]()
    monkeypatch.setattr(
        SqliteEventLogStorage, "has_table", lambda self, name: asked.append(name) or name in there
    )
    assert not storage.has_table("new")
    there.add("new")
    assert storage.has_table("new")
    assert storage.has_table("new")
    assert asked == ["new", "new"]
    storage.dispose()


def test_what_the_home_tells_dagster_to_load_is_there(home: Path) -> None:
    settings = yaml.safe_load((prepare_home(home) / "dagster" / "dagster.yaml").read_text())
    for part in ("compute_logs", "event_log_storage"):
        assert hasattr(import_module(settings[part]["module"]), settings[part]["class"])


def test_the_daemon_is_a_module_with_that_command() -> None:
    module, command = DAEMON
    main: Callable[..., Any] = import_module(f"{module}.cli").create_dagster_daemon_cli()
    assert command in main.commands  # type: ignore[attr-defined]


def test_no_other_module_reaches_in() -> None:
    allowed = {ROOT / "pipelines/dagster_internals.py"}
    found = [
        f"{path.relative_to(ROOT)}: {name}"
        for package in ("marketing_api", "warehouse", "assets", "home", "write_back", "upkeep", "pipelines")
        for path in (ROOT / package).rglob("*.py")
        if path not in allowed
        for name in imported(path)
        if name.startswith(("dagster._", "dagster_webserver"))
    ]
    assert found == []


def imported(path: Path) -> list[str]:
    """The modules that a file imports, wherever in it."""
    nodes = list(ast.walk(ast.parse(path.read_text())))
    names = [alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names]
    return names + [node.module for node in nodes if isinstance(node, ast.ImportFrom) and node.module]


def test_tags_of_ours_are_those_that_dagster_reads() -> None:
    storage, versions = (
        import_module(f"dagster._core.{name}") for name in ("storage.tags", "definitions.data_version")
    )
    assert {storage.EXTERNALLY_MANAGED_ASSETS_TAG: "true"} == DEFERRED
    assert versions.DEFAULT_DATA_VERSION.value == ONE_VERSION
    assert provenance_tags(dg.AssetSpec("a", deps=["b"], code_version="c")) == {
        versions.DATA_VERSION_TAG: ONE_VERSION,
        versions.CODE_VERSION_TAG: "c",
        f"{versions.INPUT_DATA_VERSION_TAG_PREFIX}/b": ONE_VERSION,
        f"{versions.INPUT_EVENT_POINTER_TAG_PREFIX}/b": "NULL",
    }
