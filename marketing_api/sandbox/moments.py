"""How the service writes dates and times: local to the account, in the form of a switch (api-observed row 21)."""

import datetime as dt
import functools
from zoneinfo import ZoneInfo

from marketing_api.sandbox.words import WORDS

DAY = 86_400

_FORMS: dict[str, str] = WORDS["date_forms"]
_MIXED = tuple(_FORMS)


class Moments:
    """Texts for moments (unix seconds) in one zone. `form` is a position of the switch `dates`."""

    def __init__(self, zone: str, form: str = "specified") -> None:
        self.zone = ZoneInfo(zone)
        self.form = form

    def unix(self, moment: dt.datetime) -> int:
        return int(moment.replace(tzinfo=self.zone).timestamp())

    def midnight(self, day: dt.date) -> int:
        return self.unix(dt.datetime.combine(day, dt.time()))

    def date(self, moment: int) -> dt.date:
        return dt.datetime.fromtimestamp(moment, self.zone).date()

    def text(self, moment: int, specified: str = "24h") -> str:
        """The moment in the form that the place has by the specification, or that of the switch."""
        name = _MIXED[moment % len(_MIXED)] if self.form == "mixed" else specified if self.form == "specified" else self.form
        return self.day(moment, _FORMS[name])

    def day(self, moment: int, form: str = "%m/%d/%Y") -> str:
        return _text(moment, self.zone, form)


@functools.lru_cache(maxsize=20_000)
def _text(moment: int, zone: ZoneInfo, form: str) -> str:
    return dt.datetime.fromtimestamp(moment, zone).strftime(form)
