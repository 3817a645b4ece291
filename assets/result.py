"""What one asset fetched for one account, and what became of it: loaded, missing, and whether that
fails the night.

Not here: fetching (`fetch`), loading (`reader`).
"""

import datetime as dt
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

from assets.days import DateRange, join_ranges
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

#: Single items that the service refuses (a contact deleted since the listing) are normal up to this
#: share, or this many.
_REFUSED_SHARE = 0.01
_REFUSED_FEW = 3


@dataclass(frozen=True)
class Batch:
    """Responses that are loaded in one transaction. `scope` is what the requests do not name
    themselves, beside the days (of a load without responses, what is gone)."""

    request_ids: tuple[int, ...] = ()
    scope: Scope = field(default_factory=dict)
    is_complete: bool = True
    is_nothing_due: bool = False  # there was nothing to request: what is loaded is still current
    due_at: dt.datetime | None = None  # when the scope should be read again; None: the next night
    service_count: int | None = None
    # rows of a listing's scope that were there before it, as far as they were looked at,
    known_count: int = 0
    kept_count: int = 0  # that it has, too
    unknown_count: int = 0  # and that it has beside them
    failures: tuple[Failure, ...] = ()
    days: DateRange | None = None  # of a date-ranged read
    shortfall: str = ""  # why this is not complete, where that is news

    @classmethod
    def from_responses(
        cls, responses: Sequence[Response], failures: Sequence[Failure] = ()
    ) -> Self:
        """What came of some requests."""
        return cls(tuple(response.request_id for response in responses), failures=tuple(failures))

    def __add__(self, other: Self) -> Self:
        """This batch's scope and completeness, with the other's responses beside them."""
        return replace(
            self,
            request_ids=self.request_ids + other.request_ids,
            failures=self.failures + other.failures,
        )


@dataclass
class Spent:
    """What reading cost: requests sent, and seconds that they waited for the limit, summed over
    threads."""

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
    days: list[DateRange] = field(default_factory=list)  # that were read, of a date-ranged asset
    # that were requested and did not come whole
    lacking: list[DateRange] = field(default_factory=list)
    shortfalls: list[str] = field(default_factory=list)
    # errorCodes of refusals that mean that there is nothing
    nothing: set[int] = field(default_factory=set)
    learnt: list[str] = field(default_factory=list)  # what this run found out and reports once
    is_finished: bool = False  # nothing more is requested, and what came is loaded

    def note_batch(self, batch: Batch) -> None:
        self.failures += batch.failures
        self.shortfalls += [batch.shortfall] if batch.shortfall else []
        if batch.days is not None:
            (self.days if batch.is_complete else self.lacking).append(batch.days)

    @property
    def unexplained(self) -> list[Failure]:
        """Failures but for refusals that mean that there is nothing."""
        return [failure for failure in self.failures if not _has_code(failure, self.nothing)]

    def learn_refusals(self, nothing: set[int]) -> None:
        """Refusals with these errorCodes mean that there is nothing. Such a refusal never deletes
        anything: absence is proven by a whole response alone."""
        for code in sorted(nothing - self.nothing):
            count = sum(_has_code(failure, {code}) for failure in self.failures)
            self.learnt.append(
                f"the service refuses {count:,} of {self.fetched:,} addresses with errorCode "
                f"{code}: taken as addresses without coupons, requested again at their turn; "
                "coupons that are stored stay"
            )
        self.nothing = nothing

    @property
    def days_in_words(self) -> str:
        """Which days were read, and which stayed incomplete; empty where nothing is read by
        days."""
        lacking = ""
        if self.lacking:
            lacking = f"incomplete: {', '.join(map(str, join_ranges(self.lacking)))}"
        return "; ".join(filter(None, (", ".join(map(str, join_ranges(self.days))), lacking)))

    @property
    def missing_reasons(self) -> list[str]:
        """Why data is missing, one line per reason; empty when all of it came."""
        lines = []
        if self.error:
            lines = [_describe_error(self.error)]
        reasons = Counter(_describe_error(failure.error) for failure in self._serious_failures())
        lines += [
            f"{reason} ({count} requests)" if count > 1 else reason
            for reason, count in reasons.items()
        ]
        if self.plan is not None and not self.plan.is_whole:
            lines.append(self.plan.shortfall)
        lines += self.shortfalls
        lines += [refusal for report in self.reports for refusal in report.refused.values()]
        rejected = self._count_rows("rejected").items()
        return lines + [
            f"{table}: {count:,} entries could not be read: see sync.rejected_records"
            for table, count in rejected
        ]

    @property
    def notices(self) -> list[str]:
        """What a person should know although no row is missing."""
        stale = [line for report in self.reports for line in report.stale]
        without = "were loaded without a value that could not be read: see sync.rejected_records"
        return [
            *(f"newer responses were loaded already of {line}" for line in stale),
            *(
                f"{count:,} rows of {table} {without}"
                for table, count in self._count_rows("flawed").items()
            ),
        ]

    def _count_rows(self, what: str) -> Counter[str]:
        """What all loads together report, by table, without zeros."""
        counts: Counter[str] = Counter()
        for report in self.reports:
            counts.update({name: getattr(table, what) for name, table in report.tables.items()})
        return +counts

    @property
    def is_through(self) -> bool:
        """Everything that was requested came; the plan may have left out what its budget did not
        allow."""
        return not self.error and not self._serious_failures()

    @property
    def is_failure(self) -> bool:
        """False when all is well, or when the account merely lacks the operation: that costs the
        table, not the night."""
        errors = [
            *([self.error] if self.error else []),
            *(failure.error for failure in self._serious_failures()),
        ]
        return any(not isinstance(error, NotAvailable | BudgetSpent) for error in errors)

    @property
    def is_worth_a_retry(self) -> bool:
        """True when another try may succeed without any change."""
        errors = [self.error, *(failure.error for failure in self.failures)]
        return any(
            isinstance(error, Transient) and not isinstance(error, GivenUp) for error in errors
        )

    def _serious_failures(self) -> list[Failure]:
        few = max(_REFUSED_FEW, _REFUSED_SHARE * self.planned)
        failures = self.unexplained
        unexpected = [
            failure for failure in failures if not isinstance(failure.error, Refused | InvalidCall)
        ]
        if len(failures) - len(unexpected) > few:
            return failures
        return unexpected


def share_read(results: Iterable[AccountResult]) -> float | None:
    """How much came of what was requested, 0 to 1: of the calls, or of the days where that is less;
    None when nothing was requested."""
    fetched = 0
    planned = 0
    days = 0
    lacking = 0
    for result in results:
        fetched = fetched + result.fetched
        planned = planned + result.planned
        days = days + sum(map(len, join_ranges(result.days)))
        lacking = lacking + sum(map(len, join_ranges(result.lacking)))
    if planned:
        return min(fetched / planned, days / (days + lacking) if lacking else 1)
    return None


def done_to(table: Table, results: Iterable[AccountResult]) -> TableReport:
    """What all loads together did to a table."""
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
    yield from (
        f"{', '.join(names)}, account {account}: {text}"
        for (account, text), names in by_text.items()
    )


def _describe_error(error: Exception) -> str:
    """Without addresses: this is logged, shown in Dagster and sent to webhooks, and libraries quote
    the values they choke on."""
    text = mask_addresses(str(error))
    if isinstance(error, MarketingApiError | WarehouseError | OSError):
        return text or type(error).__name__
    return (
        f"something unexpected happened: {type(error).__name__}: {text}; the newest file of the "
        "home's logs shows where"
    )


def _has_code(failure: Failure, codes: Collection[int]) -> bool:
    return isinstance(failure.error, Refused) and failure.error.code in codes
