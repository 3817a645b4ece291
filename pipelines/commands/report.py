"""`marketing-sync report`: one page about what is published, for the business owner."""

from __future__ import annotations

import argparse

from pipelines import exits
from pipelines.home import prepare_home
from pipelines.report.write import write_report
from pipelines.settings import Settings


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """None."""


def run(arguments: argparse.Namespace, settings: Settings) -> int:
    """Write it and say where it stands; 1 when nothing is published yet."""
    path, _ = write_report(prepare_home(settings.home))
    print(f"{path}: {path.stat().st_size / 1000:,.0f} kB, open it in a browser")
    return exits.DONE
