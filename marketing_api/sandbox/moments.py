"""How the service writes dates and times: local to the account, in the form of a switch (api-observed row 21)."""

import datetime as dt
import functools
from zoneinfo import ZoneInfo

DAY = 86_400

#: Forms of local date-times by name (strftime). What stands before the first blank is the day.
FORMS = {
    "24h": "%m/%d/%Y %H:%M",
    "24h-pm": "%m/%d/%Y %H:%M %p",
    "12h": "%m/%d/%Y %I:%M %p",
    "iso-12h": "%Y-%m-%d %I:%M %p",
    "dmy-12h": "%d-%m-%Y %I:%M %p",
    "iso-12h-tight": "%Y-%m-%d %I:%M%p",
}
_MIXED = tuple(FORMS)


class Moments:
    """Texts for moments (unix seconds) in one zone. `form` is a name of FORMS, `mixed`, or `specified` (each place has its own)."""

    def __init__(self, zone: str, form: str = "specified") -> None:
        self.zone = ZoneInfo(zone)
        self.form = form

    def unix(self, moment: dt.datetime) -> int:
        """A local date-time without an offset as unix seconds."""
        return int(moment.replace(tzinfo=self.zone).timestamp())

    def midnight(self, day: dt.date) -> int:
        return self.unix(dt.datetime.combine(day, dt.time()))

    def date(self, moment: int) -> dt.date:
        return dt.datetime.fromtimestamp(moment, self.zone).date()

    def text(self, moment: int, specified: str = "24h") -> str:
        """The moment in the form that the place has by the specification, or that of the switch."""
        name = _MIXED[moment % len(_MIXED)] if self.form == "mixed" else specified if self.form == "specified" else self.form
        return self.day(moment, FORMS[name])

    def day(self, moment: int, form: str = "%m/%d/%Y") -> str:
        return _text(moment, self.zone, form)


@functools.lru_cache(maxsize=20_000)
def _text(moment: int, zone: ZoneInfo, form: str) -> str:
    return dt.datetime.fromtimestamp(moment, zone).strftime(form)
