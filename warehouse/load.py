"""What a load is: the event that is logged before it is applied, and the report of what it did.

Belongs here: values. Not here: applying (`warehouse`, `loads/`).
"""

from __future__ import annotations

import datetime as dt
import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from marketing_api.clock import utc_now
from marketing_api.exchange import new_request_id
from warehouse.archive.load_log import pack_ids, unpack_ids
from warehouse.loads.target import TableReport


@dataclass(frozen=True, slots=True)
class Load:
    """Answers that are loaded together in one transaction. The log of loads and the archive are all a rebuild needs.

    `tables` are filled from the answers in `request_ids`, in that order. `scope` says what was asked, as far as the
    questions do not: `{"from_on": …, "to_on": …}` (dates) for ranges, with the `reason` of one that is not complete; for a load
    without answers, the scope that is gone (`{"list_id": 12}` or `{"list_id": [12, 13]}`). `is_complete`: all of the scope was
    read, so that missing rows are gone.
    `shrink_limit`: the share of its rows that a listing may lose (None: all). `zone`: the account's time zone.
    """

    account: str
    asset: str
    tables: tuple[str, ...]
    request_ids: tuple[int, ...]
    zone: str
    scope: Mapping[str, Any] = field(default_factory=dict)
    is_complete: bool = True
    shrink_limit: float | None = None
    service_count: int | None = None
    due_at: dt.datetime | None = None
    logged_at: dt.datetime = field(default_factory=utc_now)
    place: int | None = field(default_factory=new_request_id)  # among requests, of a load without any; None: not noted yet

    @property
    def load_id(self) -> str:
        """Equal for loads of the same answers into the same tables: such a load is applied once (32 hex digits)."""
        event = self.event() | {"request_ids": list(self.request_ids)}  # however the log writes them
        for name in ("due_at", "service_count", "place", *(["logged_at"] if self.request_ids else [])):
            del event[name]
        return hashlib.blake2b(json.dumps(event, sort_keys=True).encode(), digest_size=16).hexdigest()

    def event(self) -> dict[str, Any]:
        """As JSON values, for the log."""
        return {
            "account": self.account,
            "asset": self.asset,
            "tables": list(self.tables),
            "request_ids": pack_ids(self.request_ids),
            "zone": self.zone,
            "logged_at": self.logged_at.astimezone(dt.UTC).isoformat(),
            "scope": json.loads(json.dumps(dict(self.scope), default=str)),
            "is_complete": self.is_complete,
            "shrink_limit": self.shrink_limit,
            "service_count": self.service_count,
            "due_at": self.due_at.astimezone(dt.UTC).isoformat() if self.due_at else None,
            "place": self.place,
        }

    @classmethod
    def from_event(cls, event: Mapping[str, Any]) -> Load:
        """The load that was logged; what later versions of this program added to it is left out."""
        known = {"place": None} | {name: event[name] for name in cls.__dataclass_fields__ if name in event}
        moments = {name: dt.datetime.fromisoformat(known[name]) for name in ("logged_at", "due_at") if known.get(name)}
        return cls(**{**known, **moments, "tables": tuple(event["tables"]), "request_ids": unpack_ids(event["request_ids"])})


@dataclass
class LoadReport:
    """What a load did, by table name. `is_repeat`: the same load had been applied before, so nothing was done."""

    load_id: str
    tables: dict[str, TableReport]
    is_repeat: bool = False

    @property
    def refused(self) -> dict[str, str]:
        """What of the answers was not believed, and so not applied or only added: table name → a sentence that names the scopes."""
        found = {name: [*report.refused, *report.unproven] for name, report in self.tables.items()}
        return {name: f"{name}: {'; '.join(reasons)}" for name, reasons in found.items() if reasons}

    @property
    def stale(self) -> list[str]:
        """What was not applied since a newer answer had been loaded before, a sentence for each table."""
        return [f"{name}: {', '.join(report.stale)}" for name, report in self.tables.items() if report.stale]

    @classmethod
    def of(cls, load: Load, reports: Iterable[TableReport]) -> LoadReport:
        return cls(load.load_id, {report.table: report for report in reports})

    @classmethod
    def of_repeat(cls, load: Load) -> LoadReport:
        return cls(load.load_id, {name: TableReport(name) for name in load.tables}, is_repeat=True)
