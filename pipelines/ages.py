"""How long ago something was, in words."""

from __future__ import annotations

import datetime as dt


def ago(moment: dt.datetime, now: dt.datetime) -> str:
    """E.g. `just now`, `5 minutes ago`, `7 hours ago`, `3 days ago`."""
    minutes = (now - moment).total_seconds() / 60
    if minutes < 1.5:
        return "just now" if minutes < 0.5 else "a minute ago"
    if minutes < 90:
        return f"{minutes:.0f} minutes ago"
    return f"{minutes / 60:.0f} hours ago" if minutes < 48 * 60 else f"{minutes / 60 / 24:.0f} days ago"
