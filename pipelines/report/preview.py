"""The report in a few lines of Markdown, for the Dagster UI: numbers only, nothing that the service's texts could bring in."""

from __future__ import annotations

from pipelines.report import words
from pipelines.report.data import ReportData
from pipelines.report.sections.overview import changes_of, key_figures


def preview(report: ReportData) -> str:
    """Per account its figures and what changed; accounts go by their names in the settings."""
    parts = []
    for account in report.accounts:
        figures = [f"- {figure.name}: **{figure.value}** {figure.below}".rstrip() for figure in key_figures(account)]
        rows = [
            f"| {name} | {words.count(one.yesterday)} | {words.count(one.week)} | {words.change(one.difference)} |"
            for name, one in changes_of(account)
        ]
        head = ["| | yesterday | 7 days | against the 7 before |", "|---|--:|--:|--:|"]
        parts.append("\n".join([f"**{account.name}**, {words.day(account.today)}", "", *figures, "", *head, *rows]))
    return "\n\n".join(parts) or "Nothing has been read yet."
