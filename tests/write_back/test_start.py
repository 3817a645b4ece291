"""A plan starts soon: what only sending needs is not imported for it."""

import subprocess
import sys

_OF_A_PLAN = (
    "duckdb",
    "pyarrow",
    "numpy",
    "pydantic",
    "marketing_api.operations",
    "write_back.kinds",
)
_LARGE = ("requests", "urllib3", "dagster", "marketing_api.client", "warehouse.bookkeeping")


def imported(module: str, names: tuple[str, ...]) -> str:
    code = f"import sys, {module}; print([name for name in {names} if name in sys.modules])"
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout


def test_a_plan_imports_neither_the_client_nor_dagster() -> None:
    assert imported("marketing_sync.push_terminal", _LARGE) == "[]\n"


def test_help_imports_nothing_of_what_a_plan_needs() -> None:
    assert imported("marketing_sync.commands.push", _OF_A_PLAN + _LARGE) == "[]\n"
