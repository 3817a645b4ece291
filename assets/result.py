"""What became of one asset for one account: what was loaded, what could not be had, and whether that fails the night."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from assets.ask import Part
from assets.days import DateRange, joined
from assets.known import Known
from assets.planning.plan import Line
from assets.refusals import is_nothing, refused_as_nothing, words
from assets.session import Spent
from marketing_api.client import Failure
from marketing_api.errors import BudgetSpent, GivenUp, InvalidCall, MarketingApiError, NotAvailable, Refused, Transient
from marketing_api.redaction import without_addresses
from warehouse.errors import WarehouseError
from warehouse.loads.load import LoadReport

#: Single items that the service refuses (a contact deleted since the listing) are normal up to this share, or this many.
_REFUSED_SHARE = 0.01
_REFUSED_FEW = 3


@dataclass
class AccountResult:
    """Counts are of questions: `asked` were answered, by the service or from the archive, of those `planned` so far."""

    account: str
    reports: list[LoadReport] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)
    error: Exception | None = None
    asked: int = 0
    planned: int = 0
    spent: Spent = field(default_factory=Spent)
    line: Line | None = None  # of the plan, where there is one
    days: list[DateRange] = field(default_factory=list)  # that were read, of a date-ranged asset
    lacking: list[DateRange] = field(default_factory=list)  # that were asked for and did not come whole
    shortfalls: list[str] = field(default_factory=list)
    nothing: set[int] = field(default_factory=set)  # errorCodes by which refusals say that there is nothing
    learnt: list[str] = field(default_factory=list)  # what this run found out and says once

    def note(self, part: Part) -> None:
        """Take in what a part says about the reading."""
        self.failures += part.failures
        self.shortfalls += [part.problem] if part.problem else []
        if part.days is not None:
            (self.days if part.is_complete else self.lacking).append(part.days)

    def learn_refusals(self, known: Known) -> None:
        """Find out whether refusals say that there is nothing to be had."""
        self.nothing = set(known.refused_as_nothing)
        others = [failure for failure in self.failures if not is_nothing(failure, self.nothing)]
        if (code := refused_as_nothing(others, self.asked, known.with_coupons())) is not None:
            self.nothing.add(code)
            self.learnt.append(words(others, code, self.asked))

    @property
    def days_in_words(self) -> str:
        """Which days were read, and which stayed incomplete; empty where nothing is read by days."""
        lacking = f"incomplete: {', '.join(map(str, joined(self.lacking)))}" if self.lacking else ""
        return "; ".join(filter(None, (", ".join(map(str, joined(self.days))), lacking)))

    @property
    def problems(self) -> list[str]:
        """Why data could not be had, one line per reason; empty when all of it was."""
        lines = [_sentence(self.error)] if self.error else []
        reasons = Counter(_sentence(failure.error) for failure in self._serious())
        lines += [f"{reason} ({count} requests)" if count > 1 else reason for reason, count in reasons.items()]
        if self.line is not None and not self.line.is_whole:
            lines.append(shortfall(self.line))
        lines += self.shortfalls
        return lines + [refusal for report in self.reports for refusal in report.refused.values()]

    @property
    def is_through(self) -> bool:
        """Everything that was asked for came; the plan may have left out what its budget did not allow. What was not believed is asked
        anew: the same answer would not be believed the next time either."""
        return not self.error and not self._serious()

    @property
    def is_failure(self) -> bool:
        """False when all is well, or when the account merely lacks the operation: that costs the table, not the night."""
        errors = [*([self.error] if self.error else []), *(failure.error for failure in self._serious())]
        return any(not isinstance(error, NotAvailable | BudgetSpent) for error in errors)

    @property
    def is_worth_a_retry(self) -> bool:
        """True when another try may succeed without anybody changing anything."""
        errors = [self.error, *(failure.error for failure in self.failures)]
        return any(isinstance(error, Transient) and not isinstance(error, GivenUp) for error in errors)

    def _serious(self) -> list[Failure]:
        few = max(_REFUSED_FEW, _REFUSED_SHARE * self.planned)
        failures = [failure for failure in self.failures if not is_nothing(failure, self.nothing)]
        others = [failure for failure in failures if not isinstance(failure.error, Refused | InvalidCall)]
        return failures if len(failures) - len(others) > few else others


def share_read(results: Iterable[AccountResult]) -> float | None:
    """How much was had of what was asked for, 0 to 1: of the questions, or of the days where those tell less; None when nothing was."""
    had, wanted, days, lacking = 0, 0, 0, 0
    for result in results:
        had, wanted = had + result.asked, wanted + result.planned
        days, lacking = days + sum(map(len, joined(result.days))), lacking + sum(map(len, joined(result.lacking)))
    return min(had / wanted, days / (days + lacking) if lacking else 1) if wanted else None


def shortfall(line: Line) -> str:
    """What a plan had to leave out although the guarantee wants it asked."""
    parts = [f"{line.waiting:,} never asked yet" if line.waiting else "", f"{line.late:,} older than they may be" if line.late else ""]
    return f"the budget leaves out {' and '.join(filter(None, parts))}, of {line.total:,}; `marketing-sync plan` tells what would be needed"


def _sentence(error: Exception) -> str:
    """Without addresses: this is logged, shown in Dagster and sent to webhooks, and libraries quote the values they choke on."""
    text = without_addresses(str(error))
    if isinstance(error, MarketingApiError | WarehouseError | OSError):
        return text or type(error).__name__
    return f"something unexpected happened: {type(error).__name__}: {text}; the newest file of the home's logs shows where"
