"""The summary at the end of a sync."""

from __future__ import annotations

import json
import math
import shlex
import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jinja2 import Environment
from rich.console import Console
from rich.markup import escape

from assets.prefetch import Prefetcher
from assets.result import AccountResult, share_read
from assets.sources import SOURCE_ASSETS
from home.progress import clock
from home.settings import Settings
from marketing_api.exchange import Outcome
from marketing_api.redaction import plain
from pipelines.commands.status import grid
from pipelines.publishing import OwnModels, breaking_changes, is_published_since, what_is_published
from warehouse.models import BuildReport, Status
from warehouse.publish import published_path

if TYPE_CHECKING:
    from pipelines.push_jobs import AudienceSyncs  # brings Dagster, which takes seconds to import
    from pipelines.report.mail import Reports

_FIRST_QUERY = """\
select c.subject, s.opened_count, s.opened_percent
from source.campaign_stats s join source.campaigns c using (account, campaign_id)
order by s.observed_on desc, s.opened_count desc limit 5"""


def print_summary(
    reader: Prefetcher, settings: Settings, models: BuildReport | None, own: OwnModels, reports: Reports
) -> None:
    """Tables, requests, what could not be read, the models, where the file is, and a query to start with."""
    console = Console(highlight=False, soft_wrap=True)
    with reader.warehouse.reading():
        console.print(
            grid("", "table, >rows, >new, >changed, >deleted, >rejected, >read", _table_cells(reader))
        )
    is_published = models is not None and is_published_since(settings, reader.began_by_files)
    # `make sync` leaves the program in `.venv/bin`, where no shell looks for it.
    program = "marketing-sync" if shutil.which("marketing-sync") else shlex.quote(sys.argv[0])
    text = _texts().summary(
        reader,
        max((reader.ended_at - reader.began_at).total_seconds(), 0.001),
        reader.problems(),
        models,
        own,
        what_is_published(settings, reader.now()),
        is_published,
        _schema_changes(reader, settings, is_published=is_published),
        settings.home,
        reports,
        program,
        first_query(published_path(settings.home) if is_published else settings.warehouse_path),
    )
    console.print(text, end="", emoji=False)


def _schema_changes(reader: Prefetcher, settings: Settings, *, is_published: bool) -> list[str]:
    """How the service's responses, and the tables of a copy that was just published, differ from what they
    were."""
    breaking = breaking_changes(settings) if is_published else []
    reports = [
        report
        for result in reader.results.values()
        for loaded in result.reports
        for report in loaded.tables.values()
    ]
    return [line for report in reports for line in report.drift] + [
        f"published file, {line}" for line in breaking
    ]


def print_activations(activations: AudienceSyncs) -> None:
    """What went back to the service, a line each; nothing where none was run."""
    if activations.lines:
        Console(highlight=False, soft_wrap=True).print(
            _texts().activations(activations.lines), end="", emoji=False
        )


@cache
def _texts() -> Any:
    """The macros by name. What they are filled with is shown as it is, whatever is in it."""
    made = Environment(trim_blocks=True, lstrip_blocks=True, finalize=lambda value: escape(plain(value)))  # noqa: S701 (plain text)
    made.filters |= {"clock": clock, "days_read": days_read, "problem_lines": problem_lines}
    made.globals |= {
        "OK": Status.OK,
        "UNCHANGED": Status.UNCHANGED,
        "FAILURES": [each for each in Outcome if each is not Outcome.OK],
    }
    return made.from_string(Path(__file__).with_suffix(".jinja").read_text(encoding="utf-8")).module


def first_query(file: Path) -> str:
    """What to type into a shell to start with, with DuckDB's own command line or without; later lines are
    indented as the summary is."""
    if shutil.which("duckdb"):
        typed = f'duckdb -readonly {shlex.quote(str(file))} "{_FIRST_QUERY}"'
    else:
        code = (
            f"import duckdb; duckdb.connect({json.dumps(str(file))}, "
            f'read_only=True).sql("""{_FIRST_QUERY}""").show()'
        )
        typed = f"{shlex.quote(sys.executable)} -c {shlex.quote(code)}"
    return typed.replace("\n", "\n           ")


def _table_cells(reader: Prefetcher) -> Iterator[tuple[str, ...]]:
    for asset in SOURCE_ASSETS.values():
        results = [result for (name, _), result in reader.results.items() if name == asset.name]
        if not results:
            continue
        read = share_read(results)
        share = "–" if read is None else f"{math.floor(100 * read)} %"
        for table in asset.tables:
            counts = [
                report.tables[table.name]
                for result in results
                for report in result.reports
                if table.name in report.tables
            ]
            cells = [
                sum(getattr(count, name) for count in counts)
                for name in ("new", "changed", "deleted", "rejected")
            ]
            yield (
                table.name,
                f"{reader.warehouse.row_count(table):,}",
                *(f"{cell:,}" if cell else "·" for cell in cells),
                share,
            )


def days_read(results: Mapping[tuple[str, str], AccountResult]) -> Iterator[str]:
    """Which days the date-ranged tables were read for, a line for those with the same; by account where these
    differ."""
    tables: dict[str, list[str]] = {}
    for asset in SOURCE_ASSETS.values():
        by_account = {
            account: result.days_in_words for (name, account), result in results.items() if name == asset.name
        }
        different = set(by_account.values())
        if different - {""}:
            by_name = "; ".join(f"account {name}: {days or 'none'}" for name, days in by_account.items())
            words = different.pop() if len(different) == 1 else by_name
            tables.setdefault(words, []).extend(table.name for table in asset.tables)
    yield from (f"days read of {', '.join(names)}: {words}" for words, names in tables.items())


def problem_lines(problems: Mapping[tuple[str, str], Iterable[str]]) -> Iterator[str]:
    """Reasons by (asset, account) → a line per account and reason: an account that cannot be reached has one
    for all assets."""
    by_reason: dict[tuple[str, str], list[str]] = {}
    for (asset, account), reasons in problems.items():
        for reason in reasons:
            by_reason.setdefault((account, reason), []).append(asset)
    yield from (
        f"{', '.join(names)}, account {account}: {reason}" for (account, reason), names in by_reason.items()
    )
