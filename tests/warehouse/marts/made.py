"""What the parts of a made-up account share: its name, zone, clock and draw."""

import datetime as dt
import random
from dataclasses import dataclass
from functools import cached_property
from zoneinfo import ZoneInfo

from tests.warehouse.marts.rows import Row

#: When the last night asked.
NOW = dt.datetime(2026, 3, 20, 2, 30, tzinfo=dt.UTC)
#: How many nights asked, some of which are missing.
NIGHTS = 45


@dataclass(frozen=True)
class Made:
    """One account that is being made; every draw is from `draw`."""

    account: str
    zone: ZoneInfo
    draw: random.Random
    contacts: int

    def row(self, columns: str = "", *values: object, **named: object) -> Row:
        """A row of the account with the times of loading: first seen when the nights began."""
        began = NOW - dt.timedelta(days=NIGHTS)
        told = dict(zip(columns.split(), values, strict=True)) | named
        times = {"_first_seen_at": began, "_changed_at": told.get("_deleted_at") or began}
        return {"account": self.account, **times, **told}

    def local_date(self, moment: dt.datetime) -> dt.date:
        return moment.astimezone(self.zone).date()

    @cached_property
    def today(self) -> dt.date:
        return self.local_date(NOW)

    @cached_property
    def nights(self) -> list[dt.date]:
        """The local days of asking, oldest first; the last one is today."""
        days = [self.today - dt.timedelta(days=back) for back in range(NIGHTS)]
        return sorted({self.today, *(day for day in days if self.draw.random() > 0.15)})

    def moment(self, days_back: float) -> dt.datetime:
        """To the second, so many days before now."""
        return (NOW - dt.timedelta(days=days_back)).replace(microsecond=0)

    def chance(self, share: float) -> bool:
        return self.draw.random() < share
