"""What became of the models and their tests, and how that is said in a sentence. Not here: running them (`models`)."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum

from marketing_api.redaction import MASK, without_addresses

#: DuckDB quotes the values that it chokes on in single quotes; names stand in double ones.
_QUOTED_VALUE = re.compile(r"'[^']*'")


class Status(Enum):
    """Failed: it is wrong, or could not be built. Skipped: something that it needs failed."""

    OK = "ok"
    WARNED = "warned"
    FAILED = "failed"
    SKIPPED = "skipped"


_STATUS = {
    "success": Status.OK,
    "pass": Status.OK,
    "no-op": Status.OK,
    "warn": Status.WARNED,
    "error": Status.FAILED,
    "fail": Status.FAILED,
    "runtime error": Status.FAILED,
}


@dataclass(frozen=True, slots=True)
class Outcome:
    """One model or test. `failures`: rows that break the test; `model`: the model that it is about."""

    unique_id: str
    name: str
    model: str
    is_test: bool
    status: Status
    seconds: float
    failures: int | None = None
    message: str = ""

    @property
    def sentence(self) -> str:
        """What is the matter with it, without values from the data."""
        if not self.is_test:
            return f"model {self.name}: {self.message}"
        if self.failures:
            return f"test of {self.model}: {self.name}, broken by {self.failures:,} rows"
        return f"test of {self.model}: {self.name} could not be evaluated: {self.message}"


def status_of(word: str) -> Status:
    """What dbt's word means."""
    return _STATUS.get(word, Status.SKIPPED)


def discreet(message: str) -> str:
    """The first telling line of one of dbt's messages, without what it may quote from the data."""
    lines = [
        line.strip() for line in message.splitlines() if line.strip() and not line.lstrip().startswith(("Database Error", "Runtime Error"))
    ]
    return without_addresses(_QUOTED_VALUE.sub(MASK, lines[0]))[:300] if lines else ""


@dataclass(frozen=True, slots=True)
class BuildReport:
    """Every model and test that was to run, in the order of finishing."""

    outcomes: tuple[Outcome, ...]
    is_full: bool

    def of(self, *statuses: Status) -> list[Outcome]:
        return [outcome for outcome in self.outcomes if outcome.status in statuses]

    @property
    def problem(self) -> str:
        """What failed and what that means, in one sentence; empty when nothing did."""
        failed, skipped = self.of(Status.FAILED), self.of(Status.SKIPPED)
        if not failed:
            return ""
        waiting = sorted({outcome.name for outcome in skipped if not outcome.is_test})
        kept = f"; not built because of that: {_some(waiting)}" if waiting else ""
        return f"{_some(outcome.sentence for outcome in failed)}{kept}"

    @property
    def warnings(self) -> list[str]:
        return [outcome.sentence for outcome in self.of(Status.WARNED)]


def _some(texts: Iterable[str], most: int = 5) -> str:
    texts = list(texts)
    more = f" and {len(texts) - most} more" if len(texts) > most else ""
    return "; ".join(texts[:most]) + more
