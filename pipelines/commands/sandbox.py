"""`marketing-sync sandbox`: the stand-in as a server of its own."""

from __future__ import annotations

import argparse

from marketing_api.sandbox import cli
from pipelines.settings import Settings

add_arguments = cli.add_arguments


def run(arguments: argparse.Namespace, settings: Settings) -> int:
    """Serve until Ctrl-C."""
    return cli.run(cli.options_from(arguments), arguments.parent)
