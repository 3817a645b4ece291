"""Writes the report into the home, whole or not at all. Not here: what it says (`page`)."""

from __future__ import annotations

import datetime as dt
import os
from pathlib import Path

from pipelines.report.data import read_report
from pipelines.report.page import render
from pipelines.report.preview import preview
from pipelines.stage import stage
from warehouse.archive.disk import Workspace, create, publish
from warehouse.published import published_path


def report_path(home: Path) -> Path:
    """Where it stands."""
    return home / "report" / "index.html"


def write_report(home: Path) -> tuple[Path, str]:
    """Make the report of what is published: where it stands, and a preview in Markdown. Raises NothingPublished."""
    with stage("report"):
        report = read_report(published_path(home), dt.datetime.now(dt.UTC))
        html, path = render(report), report_path(home)
    workspace = Workspace(home / "tmp" / "report")
    workspace.sweep()
    try:
        temporary = workspace.file(path.name)
        os.close(create(temporary))  # for the owner only from the first moment on
        temporary.write_text(html, encoding="utf-8")
        publish(temporary, path)
    finally:
        workspace.close()
    return path, preview(report)
