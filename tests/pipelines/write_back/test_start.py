"""A plan starts soon: what only sending needs is not imported for it."""

from __future__ import annotations

import subprocess
import sys

_LARGE = ("requests", "urllib3", "dagster", "marketing_api.client", "warehouse.bookkeeping")


def test_a_plan_imports_neither_the_client_nor_dagster() -> None:
    code = f"import sys, pipelines.write_back.terminal; print([name for name in {_LARGE} if name in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"
