"""Which account a push is for, and the rate that its plan reckons with. Not here: reaching it (`sending.channel`)."""

from __future__ import annotations

from marketing_api.rate_limit import SPECIFIED_RATE
from pipelines.settings import Settings, SettingsError

#: The account when none is configured: the sandbox's.
SANDBOX_ACCOUNT = "main"


def account_of(settings: Settings, name: str | None) -> str:
    """The account of this name, or the only one there is. Raises SettingsError."""
    names = [connection.account for connection in settings.accounts] or [SANDBOX_ACCOUNT]
    if name in names:
        return str(name)
    if name is None and len(names) == 1:
        return names[0]
    raise SettingsError(f"say which account with --account: {', '.join(names)}")


def rate_of(settings: Settings, account: str) -> float:
    """Requests a second to reckon with in a plan, which asks nobody."""
    caps = [connection.max_rate for connection in settings.accounts if connection.account == account] or [settings.max_rate]
    return min(SPECIFIED_RATE, caps[0] or SPECIFIED_RATE)
