"""Writes the report into the home, whole or not at all, and its few lines of Markdown for the Dagster UI."""

import contextlib
import os
from pathlib import Path

from marketing_api.clock import utc_now
from pipelines.progress import stage
from pipelines.report.figures import changes_of, key_figures
from pipelines.report.formatting import change_of, day, number
from pipelines.report.queries import ReportData, read_report
from pipelines.report.render import render
from warehouse.archive.disk import Workspace, create, move_into_place, no_folder
from warehouse.publish import published_path


def write_report(home: Path) -> tuple[Path, ReportData]:
    """Make the report of what is published: where it stands, and what it is made of. Raises NothingPublished."""
    with stage("report"):
        report = read_report(published_path(home), utc_now())
        html, path = render(report), home / "report" / "index.html"
    with contextlib.closing(Workspace(home / "tmp" / "report")) as workspace:
        temporary = workspace.file(path.name)
        os.close(create(temporary))  # for the owner only from the first moment on
        temporary.write_text(html, encoding="utf-8")
        move_into_place(temporary, no_folder(path))
    return path, report


def preview(report: ReportData) -> str:
    """Per account its figures and what changed: numbers only, nothing that the service's texts could bring in. Accounts go by their
    names in the settings.
    """
    parts = []
    for account in report.accounts:
        figures = [f"- {figure.name}: **{figure.value}** {figure.below}".rstrip() for figure in key_figures(account)]
        rows = [
            f"| {name} | {number(one.yesterday)} | {number(one.week)} | {change_of(one.difference)} |" for name, one in changes_of(account)
        ]
        head = ["| | yesterday | 7 days | against the 7 before |", "|---|--:|--:|--:|"]
        parts.append("\n".join([f"**{account.name}**, {day(account.today)}", "", *figures, "", *head, *rows]))
    return "\n\n".join(parts) or "Nothing has been read yet."
