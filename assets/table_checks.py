"""The checks that every source table gets, evaluated with the step that filled it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import dagster as dg

from assets.result import AccountResult
from warehouse.tables import Table
from warehouse.warehouse import Warehouse


@dataclass(frozen=True, slots=True)
class _Subject:
    """What a check looks at."""

    warehouse: Warehouse
    table: Table
    results: list[AccountResult]


@dataclass(frozen=True, slots=True)
class _Verdict:
    passed: bool
    text: str
    severity: dg.AssetCheckSeverity = dg.AssetCheckSeverity.ERROR


def unique_keys(subject: _Subject) -> _Verdict:
    """No two rows have the same key."""
    duplicates = subject.warehouse.duplicate_keys(subject.table)
    return _Verdict(duplicates == 0, f"{duplicates} keys occur more than once")


def complete(subject: _Subject) -> _Verdict:
    """Everything that was asked for came, and no fewer rows than the service counts."""
    problems = [f"{result.account}: {problem}" for result in subject.results for problem in result.problems]
    problems += subject.warehouse.incomplete(subject.table)
    return _Verdict(not problems, "; ".join(problems) or "all that was asked for came")


def shrink(subject: _Subject) -> _Verdict:
    """No listing was refused because it lost too many of its rows."""
    refused = [
        reason
        for result in subject.results
        for report in result.reports
        if subject.table.name in report.tables
        for reason in report.tables[subject.table.name].refused
    ]
    return _Verdict(not refused, "; ".join(refused) or "no listing lost too many rows")


def readable(subject: _Subject) -> _Verdict:
    """No record had to be set aside."""
    count = subject.warehouse.rejected_count(subject.table)
    return _Verdict(count == 0, f"{count} records in sync.rejected_records", dg.AssetCheckSeverity.WARN)


def known_fields(subject: _Subject) -> _Verdict:
    """The service sent no field for the first time that the table has no column for; it would be kept in `extra`."""
    names = subject.warehouse.new_fields(subject.table)
    return _Verdict(not names, f"new in extra: {', '.join(names)}" if names else "none", dg.AssetCheckSeverity.WARN)


_CHECKS: tuple[Callable[[_Subject], _Verdict], ...] = (unique_keys, complete, shrink, readable, known_fields)


def check_specs(key: dg.AssetKey) -> list[dg.AssetCheckSpec]:
    """The checks of one table's asset."""
    return [dg.AssetCheckSpec(check.__name__, asset=key, description=check.__doc__) for check in _CHECKS]


def check_results(key: dg.AssetKey, warehouse: Warehouse, table: Table, results: list[AccountResult]) -> Iterator[dg.AssetCheckResult]:
    """One result per check."""
    subject = _Subject(warehouse, table, results)
    for check in _CHECKS:
        verdict = check(subject)
        yield dg.AssetCheckResult(
            asset_key=key,
            check_name=check.__name__,
            passed=verdict.passed,
            severity=verdict.severity,
            description=verdict.text,
        )
