"""Which account, where it is, and with which key: what a person configures. Not here: talking to it (`client`)."""

from __future__ import annotations

from dataclasses import dataclass

from marketing_api.secret import Secret

#: Bytes of one answer, unpacked: a listing of a million contacts has some hundred million.
BODY_LIMIT = 2_000_000_000


@dataclass(frozen=True, slots=True)
class Connection:
    """One account and how to reach it. `url` up to and including `/1`; `max_rate` in requests per second; `body_limit` in bytes."""

    account: str
    url: str
    key: Secret
    max_rate: float | None = None
    timezone: str | None = None
    body_limit: int = BODY_LIMIT
