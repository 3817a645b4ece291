"""How the service writes dates and times: local to the account, in the form of a switch (api-observed row 21)."""

import datetime as dt
import functools
from zoneinfo import ZoneInfo

DAY = 86_400


#: Forms of local date-times by name: how the day and the time of day are written (strftime).
FORMS = {
    "24h": ("%m/%d/%Y", "%H:%M"),
    "24h-pm": ("%m/%d/%Y", "%H:%M %p"),
    "12h": ("%m/%d/%Y", "%I:%M %p"),
    "iso-12h": ("%Y-%m-%d", "%I:%M %p"),
    "dmy-12h": ("%d-%m-%Y", "%I:%M %p"),
    "iso-12h-tight": ("%Y-%m-%d", "%I:%M%p"),
}
_MIXED = tuple(FORMS.values())


class Moments:
    """Texts for moments (unix seconds) in one zone. `form` is a name of FORMS, `mixed`, or `specified` (each place has its own)."""

    def __init__(self, zone: str, form: str = "specified") -> None:
        self.zone = ZoneInfo(zone)
        self.form = form
        self.offset = functools.lru_cache(maxsize=8192)(self._offset)

    def _offset(self, hour: int) -> int:
        moved = dt.datetime.fromtimestamp(hour * 3600, self.zone).utcoffset()
        return int(moved.total_seconds()) if moved else 0

    def local(self, moment: int) -> tuple[int, int]:
        """(local day number since 1970, minute of the day). Offsets change on whole hours, so they are looked up by the hour."""
        day, second = divmod(moment + self.offset(moment // 3600), DAY)
        return day, second // 60

    def unix(self, moment: dt.datetime) -> int:
        """A local date-time without an offset as unix seconds."""
        return int(moment.replace(tzinfo=self.zone).timestamp())

    def midnight(self, day: dt.date) -> int:
        return self.unix(dt.datetime.combine(day, dt.time()))

    def date(self, moment: int) -> dt.date:
        return dt.date.fromordinal(self.local(moment)[0] + _EPOCH)

    def text(self, moment: int, specified: str = "24h") -> str:
        """The moment in the form that the place has by the specification, or that of the switch; its day has no blanks."""
        mixed = _MIXED[moment % len(_MIXED)] if self.form == "mixed" else None
        day_form, clock = mixed or FORMS[specified if self.form == "specified" else self.form]
        day, minute = self.local(moment)
        return f"{day_text(day, day_form)} {_minutes(clock)[minute]}"

    def day(self, moment: int, form: str = "%m/%d/%Y") -> str:
        return day_text(self.local(moment)[0], form)


_EPOCH = dt.date(1970, 1, 1).toordinal()


@functools.lru_cache(maxsize=20_000)
def day_text(day: int, form: str) -> str:
    """The text of a day number since 1970."""
    return dt.date.fromordinal(day + _EPOCH).strftime(form)


@functools.cache
def _minutes(clock: str) -> list[str]:
    """The text of every minute of a day."""
    return [dt.time(minute // 60, minute % 60).strftime(clock) for minute in range(1440)]


@functools.cache
def moments_of(zone: str, form: str = "specified") -> Moments:
    return Moments(zone, form)
