"""Dagster: assets, jobs, schedules, sensors, resources."""

#: The code location: its module, and its name in the UI, under which schedules and runs are filed.
CODE_MODULE, CODE_LOCATION = "marketing_sync.definitions", "marketing-sync"

#: Set by `marketing-sync ui` for the code that it loads: its address serves the report, see
#: `report_address`.
SERVES_REPORT = "MARKETING_SYNC_UI"


def report_address(shard: str = "") -> str:
    """Where the UI has a shard's report."""
    return f"/report/{shard}".rstrip("/")
