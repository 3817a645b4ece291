"""The vocabulary of the seeded business (`words.toml`), and how its dates and times are written."""

import datetime as dt
import tomllib
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

DAY = 86_400
#: Later than every moment of an account.
NEVER = 1 << 40

Thing = dict[str, Any]
WORDS: Thing = tomllib.loads(Path(__file__).with_name("words.toml").read_text(encoding="utf-8"))

#: Forms of local date-times; the part before the first blank is the day.
_FORMS = {
    "day": "%m/%d/%Y",
    "24h": "%m/%d/%Y %H:%M",
    "12h": "%m/%d/%Y %I:%M %p",
    "iso-12h": "%Y-%m-%d %I:%M %p",
}


class Moments:
    """How the service writes moments (unix seconds): local to the account (observation 21)."""

    def __init__(self, zone: str) -> None:
        self.zone = ZoneInfo(zone)

    def unix(self, moment: dt.datetime) -> int:
        return int(moment.replace(tzinfo=self.zone).timestamp())

    def midnight(self, day: dt.date) -> int:
        return self.unix(dt.datetime.combine(day, dt.time()))

    def date(self, moment: int) -> dt.date:
        return dt.datetime.fromtimestamp(moment, self.zone).date()

    def text(self, moment: int, form: str = "24h") -> str:
        """The moment in the form that the place has by the specification."""
        return dt.datetime.fromtimestamp(moment, self.zone).strftime(_FORMS[form])
