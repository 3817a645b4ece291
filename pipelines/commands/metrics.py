"""Print the metrics of all accounts, for Prometheus' node exporter or a job of one's own.

`marketing-sync ui` serves the same text at /metrics."""

from home import exits
from home.settings import Settings
from pipelines.commands import Arguments, command


@command(is_for_all_shards=True)
def metrics(arguments: Arguments, settings: Settings) -> int:
    from pipelines.metrics import metrics as text  # of its name

    print(text(settings), end="")
    return exits.DONE
