"""Run a simulated service on this machine."""

from collections.abc import Sequence

import click

from home.settings import Settings
from marketing_api.sandbox import server
from marketing_sync.commands import declare_command
from marketing_sync.usage import format_examples


@declare_command(
    click.Argument(["words"], nargs=-1, type=click.UNPROCESSED),
    is_for_all_shards=True,
    uses_home=False,
)
def sandbox(settings: Settings, words: Sequence[str]) -> int:
    return server.main(words, f"\b\n{format_examples('sandbox')}")


sandbox.add_help_option = False
sandbox.ignore_unknown_options = True
