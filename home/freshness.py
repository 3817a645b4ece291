"""Freshness in words: how long ago something was read, when it is due again, and whether it is
late."""

import datetime as dt

from marketing_api.clock import TOLERANCE
from warehouse.policies import FRESH_FOR, GRACE


def format_age(moment: dt.datetime, now: dt.datetime) -> str:
    """E.g. `just now`, `5 minutes ago`, `7 hours ago`, `3 days ago`."""
    minutes = (now - moment).total_seconds() / 60
    if is_to_come(moment, now):
        return "dated in the future"
    if minutes < 1.5:
        return "just now" if minutes < 0.5 else "a minute ago"
    if minutes < 90:
        return f"{minutes:.0f} minutes ago"
    return (
        f"{minutes / 60:.0f} hours ago"
        if minutes < 48 * 60
        else f"{minutes / 60 / 24:.0f} days ago"
    )


def is_to_come(moment: dt.datetime, now: dt.datetime) -> bool:
    """Whether the time is in the future, from a clock that was ahead."""
    return moment - now > TOLERANCE


def describe_standstill(
    newest: dt.datetime | None, now: dt.datetime, within: dt.timedelta = FRESH_FOR
) -> str:
    """The warning if nothing was read since `newest`, for longer than `within`, or if that is
    unknown because `newest` is in the future; empty otherwise."""
    if newest is None or (now - newest <= within and not is_to_come(newest, now)):
        return ""
    moment = newest.astimezone(dt.UTC).strftime("%Y-%m-%d %H:%M UTC")
    if is_to_come(newest, now):
        return (
            f"the last reading is dated {moment}, in the future: a clock was ahead, or this "
            "machine's is behind"
        )
    return f"nothing was read since {moment} ({format_age(newest, now)}); a sync is due every night"


def format_due(moment: dt.datetime | None, now: dt.datetime) -> str:
    """When a table will be read again."""
    if moment is None:
        return ""
    if moment + GRACE < now:
        return "late"
    hours = max((moment - now).total_seconds() / 3600, 0)
    return f"in {hours:.0f} hours" if hours < 48 else f"in {hours / 24:.0f} days"
