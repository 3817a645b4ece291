"""The code location for programs that start Dagster: `dagster dev`, `dg dev` and `dagster
definitions validate` in a clone, `dagster dev -m marketing_sync.definitions` with an installed
wheel. Settings are read from the working folder and the environment, as `marketing-sync` reads
them."""

from marketing_sync.packages import use_packages

use_packages()

from pipelines.definitions import defs  # noqa: E402 - its package has to be found first

__all__ = ["defs"]
