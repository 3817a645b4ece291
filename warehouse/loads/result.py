"""What a load says about a scope; `coverage` writes it down."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ScopeResult:
    """One scope of one table after a load; `rows` is None when it should stay as it was, counted up by what is new."""

    scope: str
    is_complete: bool
    rows: int | None
    reason: str | None = None
