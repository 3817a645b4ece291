"""The date forms of the service (observation 21) and moments that read the same in each of them."""

import datetime as dt
import random
from zoneinfo import ZoneInfo

#: Every form a date-time field was seen in. The second is 24 h and AM/PM at once.
FORMS = (
    "%m/%d/%Y %H:%M",
    "%m/%d/%Y %H:%M %p",
    "%m/%d/%Y %I:%M %p",
    "%Y-%m-%d %I:%M %p",
    "%d-%m-%Y %I:%M %p",
    "%Y-%m-%d %I:%M%p",
    "unix",
)

_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


def moment(local: dt.datetime, zone: ZoneInfo) -> dt.datetime:
    """The UTC moment of a local minute; shifted three hours where a clock change makes it doubtful."""
    local = local.replace(tzinfo=zone, fold=0)
    back = local.astimezone(dt.UTC).astimezone(zone).replace(tzinfo=None)
    if back != local.replace(tzinfo=None) or local.utcoffset() != local.replace(fold=1).utcoffset():
        local += dt.timedelta(hours=3)
    return local.astimezone(dt.UTC)


def draw(rng: random.Random, zone: ZoneInfo, first: dt.date, now: dt.datetime) -> dt.datetime:
    """A random minute between a local date and five minutes ago."""
    last = (now - dt.timedelta(minutes=5)).replace(second=0, microsecond=0)
    day = first + dt.timedelta(days=rng.randint(0, max(0, (last.astimezone(zone).date() - first).days)))
    return min(last, moment(dt.datetime.combine(day, dt.time(rng.randint(0, 23), rng.randint(0, 59))), zone))


def unix(at: dt.datetime) -> int:
    return int((at - _EPOCH).total_seconds())


def written(at: dt.datetime | None, zone: ZoneInfo, form: str) -> str:
    """`at` as account-local text in one of FORMS ("mixed": chosen by the moment, the same each time)."""
    if at is None:
        return "-" if form == "mixed" else "N/A"
    if form == "mixed":
        form = FORMS[unix(at) // 60 % len(FORMS)]
    return str(unix(at)) if form == "unix" else at.astimezone(zone).strftime(form)


def written_day(day: dt.date | None, form: str) -> str:
    """A date alone; the two input forms of the specification."""
    if day is None:
        return "-" if form == "mixed" else "N/A"
    return day.strftime("%Y-%m-%d" if form == "mixed" and day.toordinal() % 2 else "%m/%d/%Y")


def written_time(at: dt.datetime, zone: ZoneInfo, form: str) -> str:
    """The time of day of a direct review: `HH:MM AM/PM` style."""
    forms = ("%I:%M %p", "%H:%M %p", "%I:%M%p")
    return at.astimezone(zone).strftime(forms[unix(at) // 60 % 3] if form == "mixed" else forms[0])


def parse_input_day(text: str) -> dt.date:
    """A date as callers may send it: `m/d/Y` or `Y-m-d`. ValueError otherwise."""
    for form in ("%Y-%m-%d", "%m/%d/%Y"):
        try:
            return dt.datetime.strptime(text.strip(), form).date()
        except ValueError:
            continue
    raise ValueError(text)
