"""Which account, where it is, and with which key: what a person configures. Not here: talking to it (`client`)."""

from __future__ import annotations

from dataclasses import dataclass

from marketing_api.secret import Secret


@dataclass(frozen=True, slots=True)
class Connection:
    """One account and how to reach it. `url` up to and including `/1`; `max_rate` in requests per second."""

    account: str
    url: str
    key: Secret
    max_rate: float | None = None
    timezone: str | None = None
