"""What one asset fetched for one account: what was loaded, what is missing, and whether that fails
the night.

Not here: fetching (`fetch`), loading (`reader`).
"""

import datetime as dt
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

from assets.days import DateRange, join_ranges, list_ranges
from assets.planning.crawl_plan import PlanEntry
from marketing_api.address import mask_addresses
from marketing_api.client import Failure
from marketing_api.errors import (
    BudgetSpent,
    GivenUp,
    InvalidCall,
    MarketingApiError,
    NotAvailable,
    Refused,
    Transient,
)
from marketing_api.exchange import Response
from warehouse.errors import WarehouseError
from warehouse.loads.load import LoadReport, TableReport
from warehouse.tables import Table

Scope = Mapping[str, Any]

#: A few refusals of single items are normal (a contact was deleted after the listing): up to this
#: share, or this many.
_REFUSED_SHARE = 0.01
_REFUSED_FEW = 3


@dataclass(frozen=True)
class Batch:
    """Responses that are loaded in one transaction. `scope`: what the requests and days don't say;
    in a batch without responses, what is gone."""

    request_ids: tuple[int, ...] = ()
    scope: Scope = field(default_factory=dict)
    is_complete: bool = True
    is_nothing_due: bool = False  # there was nothing to request: what is loaded is still current
    due_at: dt.datetime | None = None  # when the scope should be read again; None: the next night
    service_count: int | None = None
    # Of a listing, if they were counted:
    known_count: int = 0  # rows of its scope before it
    kept_count: int = 0  # those of them that it has
    unknown_count: int = 0  # other rows that it has
    failures: tuple[Failure, ...] = ()
    days: DateRange | None = None  # of a date-ranged read
    shortfall: str = ""  # why this is not complete, if a person should know

    @classmethod
    def from_responses(
        cls, responses: Sequence[Response], failures: Sequence[Failure] = ()
    ) -> Self:
        request_ids = tuple(response.request_id for response in responses)
        return cls(request_ids, failures=tuple(failures))

    def __add__(self, other: Self) -> Self:
        """This batch's scope and completeness, with the other's responses beside them."""
        return replace(
            self,
            request_ids=self.request_ids + other.request_ids,
            failures=self.failures + other.failures,
        )


@dataclass
class Spent:
    """The cost of reading: requests sent, and seconds that they waited for the rate limit, summed
    over threads."""

    requests: int = 0
    waited_s: float = 0.0


@dataclass
class AccountResult:
    """Counts are of requests: `fetched` have a response, from the service or the archive, of those
    `planned` so far."""

    account: str
    reports: list[LoadReport] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)
    error: Exception | None = None
    fetched: int = 0
    planned: int = 0
    spent: Spent = field(default_factory=Spent)
    plan: PlanEntry | None = None  # where there is one
    days: list[DateRange] = field(default_factory=list)  # read completely, of a date-ranged asset
    lacking: list[DateRange] = field(default_factory=list)  # requested, but not complete
    shortfalls: list[str] = field(default_factory=list)
    # errorCodes of refusals which mean that there are no entries
    nothing: set[int] = field(default_factory=set)
    learnt: list[str] = field(default_factory=list)  # what this run learned and reports once
    is_finished: bool = False  # nothing more is requested, and what came is loaded

    def note_batch(self, batch: Batch) -> None:
        self.failures += batch.failures
        if batch.shortfall:
            self.shortfalls.append(batch.shortfall)
        if batch.days is not None:
            ranges = self.days if batch.is_complete else self.lacking
            ranges.append(batch.days)

    @property
    def unexplained(self) -> list[Failure]:
        """Failures without the refusals which mean that there are no entries."""
        return [failure for failure in self.failures if not _has_code(failure, self.nothing)]

    def learn_refusals(self, nothing: set[int]) -> None:
        """Refusals with these errorCodes mean that there are no entries. Such a refusal deletes no
        row: only a whole response proves that an entry is gone."""
        for code in sorted(nothing - self.nothing):
            count = sum(_has_code(failure, {code}) for failure in self.failures)
            self.learnt.append(
                f"the service refuses {count:,} of {self.fetched:,} addresses with errorCode "
                f"{code}: they count as addresses without coupons, to be requested again; "
                "stored coupons stay"
            )
        self.nothing = nothing

    @property
    def days_in_words(self) -> str:
        """Which days were read, and which stayed incomplete; empty if the asset has no days."""
        parts = []
        if self.days:
            parts.append(list_ranges(self.days))
        if self.lacking:
            parts.append(f"incomplete: {list_ranges(self.lacking)}")
        return "; ".join(parts)

    @property
    def missing_reasons(self) -> list[str]:
        """Why data is missing, one line per reason; empty if all of it came."""
        lines = []
        if self.error:
            lines.append(_describe_error(self.error))
        reasons = Counter(_describe_error(failure.error) for failure in self._serious_failures())
        for reason, count in reasons.items():
            lines.append(f"{reason} ({count} requests)" if count > 1 else reason)
        if self.plan is not None and not self.plan.is_whole:
            lines.append(self.plan.shortfall)
        lines += self.shortfalls
        for report in self.reports:
            lines += report.refused.values()
        for table, count in self._count_rows("rejected").items():
            lines.append(f"{table}: {count:,} entries could not be read: see sync.rejected_records")
        return lines

    @property
    def notices(self) -> list[str]:
        """What a person should know although no row is missing."""
        lines = []
        for report in self.reports:
            lines += [f"newer responses were already loaded for {line}" for line in report.stale]
        for table, count in self._count_rows("flawed").items():
            rows = f"{count:,} rows of {table} were loaded without a value that could not be read"
            lines.append(f"{rows}: see sync.rejected_records")
        return lines

    def _count_rows(self, what: str) -> Counter[str]:
        """The sum of all loads, by table, without zeros."""
        counts: Counter[str] = Counter()
        for report in self.reports:
            for name, table in report.tables.items():
                counts[name] += getattr(table, what)
        return +counts

    @property
    def is_through(self) -> bool:
        """Whether every planned request was answered; the budget may have left out others."""
        return not self.error and not self._serious_failures()

    @property
    def is_failure(self) -> bool:
        """Whether the run fails. It does not if the account only lacks the operation: then only the
        table has no data."""
        errors: list[Exception] = [failure.error for failure in self._serious_failures()]
        if self.error:
            errors.append(self.error)
        return any(not isinstance(error, NotAvailable | BudgetSpent) for error in errors)

    @property
    def is_worth_a_retry(self) -> bool:
        """Whether another try may succeed without any change."""
        errors = [self.error, *(failure.error for failure in self.failures)]
        transient = [error for error in errors if isinstance(error, Transient)]
        return any(not isinstance(error, GivenUp) for error in transient)

    def _serious_failures(self) -> list[Failure]:
        few = max(_REFUSED_FEW, _REFUSED_SHARE * self.planned)
        failures = self.unexplained
        expected = (Refused, InvalidCall)
        unexpected = [failure for failure in failures if not isinstance(failure.error, expected)]
        if len(failures) - len(unexpected) > few:
            return failures
        return unexpected


def share_read(results: Iterable[AccountResult]) -> float | None:
    """The share of the requests that were answered, or of the days if that is less, 0 to 1; None if
    nothing was requested. An account that failed before its first request has a share of 0."""
    fetched = planned = days = lacking = accounts = failed = 0
    for result in results:
        accounts += 1
        failed += result.is_failure and not result.planned
        fetched += result.fetched
        planned += result.planned
        days += sum(map(len, join_ranges(result.days)))
        lacking += sum(map(len, join_ranges(result.lacking)))
    if not planned:
        return None
    share = fetched / planned
    if lacking:
        share = min(share, days / (days + lacking))
    return min(share, 1) * (1 - failed / accounts)


def done_to(table: Table, results: Iterable[AccountResult]) -> TableReport:
    """The sum of all loads of a table."""
    total = TableReport(table.name)
    for result in results:
        for report in result.reports:
            if table.name in report.tables:
                total.add_report(report.tables[table.name])
    return total


def group_lines(texts: Mapping[tuple[str, str], Iterable[str]]) -> Iterator[str]:
    """Texts by (asset, account) → a line per account and text, which names all assets with the
    text, such as those of an account that can't be reached."""
    by_text: dict[tuple[str, str], list[str]] = {}
    for (asset, account), asset_texts in texts.items():
        for text in asset_texts:
            by_text.setdefault((account, text), []).append(asset)
    for (account, text), names in by_text.items():
        yield f"{', '.join(names)}, account {account}: {text}"


def _describe_error(error: Exception) -> str:
    """The error without addresses: it is logged, displayed in Dagster and sent to webhooks, and
    libraries quote the values at fault."""
    text = mask_addresses(str(error))
    if isinstance(error, MarketingApiError | WarehouseError | OSError):
        return text or type(error).__name__
    return (
        f"something unexpected happened: {type(error).__name__}: {text}; the newest file of the "
        "home's logs shows where"
    )


def _has_code(failure: Failure, codes: Collection[int]) -> bool:
    return isinstance(failure.error, Refused) and failure.error.code in codes
