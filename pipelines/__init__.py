"""Dagster: assets, jobs, schedules, sensors, resources."""

#: The code location: its module, and its name in the UI, which schedules and runs belong to.
CODE_MODULE = "marketing_sync.definitions"
CODE_LOCATION = "marketing-sync"

#: The environment variable by which `marketing-sync ui` tells the code server that it serves the
#: report at `report_address`.
SERVES_REPORT = "MARKETING_SYNC_UI"


def report_address(shard: str = "") -> str:
    """The path of a shard's report in the UI."""
    return f"/report/{shard}".rstrip("/")
