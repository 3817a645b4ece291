"""What a profile of dbt-duckdb may have beside the path of a warehouse (docs/own-models.md):

plugins: [{ module: marketing_sync.dbt }]
"""

from pathlib import Path
from typing import Any

from dbt.adapters.duckdb.plugins import BasePlugin
from dbt.adapters.events.logging import AdapterLogger

from marketing_sync.packages import ROOT, use_packages

use_packages()

from warehouse.connection import connect  # noqa: E402 - it has to be found first
from warehouse.errors import Holder, WarehouseError  # noqa: E402


class Plugin(BasePlugin):
    """dbt is given a warehouse that is there and that nobody has open: otherwise DuckDB makes an empty file,
    or ends with a traceback."""

    def update_connection_config(self, creds: Any, config: dict[str, Any]) -> None:
        """RuntimeError, of which dbt says the text alone."""
        # dbt is started in the clone or in its warehouse/, and goes into the folder of the project for some
        # commands
        places = [folder / Path(creds.path).expanduser() for folder in (Path.cwd(), ROOT)]
        path = next((place for place in places if place.exists()), places[0])
        if not path.exists():
            where = " or ".join(dict.fromkeys(str(place) for place in reversed(places)))
            raise RuntimeError(
                f"there is no {where}: run `marketing-sync sync` first, or set MARKETING_HOME to the home "
                "that you mean"
            )
        try:
            with connect(path, read_only=True, on_wait=_say):
                pass
        except WarehouseError as problem:
            raise RuntimeError(str(problem)) from None
        creds.path = str(path)


def _say(holder: Holder) -> None:
    AdapterLogger("marketing-sync").warning(f"waiting for {holder}, which has the warehouse open")
