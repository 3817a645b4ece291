"""`marketing-sync sandbox`: the stand-in as a server of its own."""

from __future__ import annotations

import argparse

from marketing_api.sandbox import server
from pipelines.settings import Settings


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The sandbox's own options."""
    server.add_arguments(parser)


def run(arguments: argparse.Namespace, settings: Settings) -> int:
    """Serve until Ctrl-C."""
    return server.run(arguments)
