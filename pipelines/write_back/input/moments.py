"""When an activity happened, as the service takes it: the account's local time, with what a clock change does to it."""

from __future__ import annotations

import datetime as dt
from typing import NamedTuple
from zoneinfo import ZoneInfo

from marketing_api.records.values import read_moment
from pipelines.write_back.input.grid import Cell
from pipelines.write_back.input.values import BadValue

_EARLIEST, _LATEST = 1970, 2100
_HINT = "write it like 2026-01-31 14:05, 01/31/2026 02:05 PM or 2026-01-31T14:05:00+01:00"
#: Two readings of a text differ by this much when it is in local time, and not at all when it says where it is.
_PROBES = (dt.UTC, dt.timezone(dt.timedelta(hours=1)))


class Moment(NamedTuple):
    """`wall`: what the clocks in the account's zone showed, to the second. `at`: unix seconds, of its first reading when the
    clocks showed it twice (`is_twice`); `again`: of the second.
    """

    wall: dt.datetime
    at: int
    again: int

    @property
    def is_twice(self) -> bool:
        return self.at != self.again


def moment(cell: Cell, zone: ZoneInfo) -> Moment:
    """BadValue for what is no date-time, and for a local one that a clock change skips."""
    aware = _aware(cell, zone)
    if not _EARLIEST <= aware.year <= _LATEST:
        raise BadValue(f"the date-time has the year {aware.year}: it has to be between {_EARLIEST} and {_LATEST}")
    wall = aware.astimezone(zone).replace(tzinfo=None, microsecond=0, fold=0)
    first, second = (int(wall.replace(tzinfo=zone, fold=fold).timestamp()) for fold in (0, 1))
    return Moment(wall, first, second)


def _aware(cell: Cell, zone: ZoneInfo) -> dt.datetime:
    if isinstance(cell, dt.datetime):
        return cell if cell.tzinfo is not None else _local(cell, zone)
    try:
        readings = [read_moment(cell, probe) for probe in _PROBES]
    except ValueError as problem:
        raise BadValue(f"the date-time cannot be read ({problem}): {_HINT}") from None
    first, second = readings
    if first is None or second is None:
        raise BadValue("the date-time is missing")
    return first if first == second else _local(first.replace(tzinfo=None), zone)


def _local(wall: dt.datetime, zone: ZoneInfo) -> dt.datetime:
    """The first reading of a local time."""
    aware = wall.replace(tzinfo=zone, fold=0)
    try:
        back = aware.astimezone(dt.UTC).astimezone(zone)
    except OverflowError:
        raise BadValue(f"the date-time has the year {wall.year}: it has to be between {_EARLIEST} and {_LATEST}") from None
    if back.replace(tzinfo=None) != wall:
        raise BadValue(f"there is no such time in {zone.key}: the clocks were put forward over it")
    return aware
