"""Writes the report into the home, whole or not at all. Not here: what it says (`page`)."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from marketing_api.clock import utc_now
from pipelines.report.data import read_report
from pipelines.report.page import render
from pipelines.report.preview import preview
from pipelines.stage import stage
from warehouse.archive.disk import Workspace, create, move_into_place, no_folder
from warehouse.publish import published_path


def report_path(home: Path) -> Path:
    """Where it stands."""
    return home / "report" / "index.html"


def write_report(home: Path) -> tuple[Path, str]:
    """Make the report of what is published: where it stands, and a preview in Markdown. Raises NothingPublished."""
    with stage("report"):
        report = read_report(published_path(home), utc_now())
        html, path = render(report), report_path(home)
    with contextlib.closing(Workspace(home / "tmp" / "report")) as workspace:
        temporary = workspace.file(path.name)
        os.close(create(temporary))  # for the owner only from the first moment on
        temporary.write_text(html, encoding="utf-8")
        move_into_place(temporary, no_folder(path))
    return path, preview(report)
