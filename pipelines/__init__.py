"""Dagster, the commands and the report."""

#: The code location: its module, and its name in the UI, under which schedules and runs are filed.
CODE_MODULE, CODE_LOCATION = "marketing_sync.definitions", "marketing-sync"
