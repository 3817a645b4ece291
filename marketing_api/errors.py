"""The errors of this package, with what the caller should do.

MarketingApiError
├── InvalidCall            fix the call: it was refused here and cost no request
├── LimitNotShared         correct MARKETING_BUDGET_URL, or see that its Redis is up
├── AuthenticationFailed   stop: the key is missing, wrong or revoked
│   └── OtherBusiness      stop: the key belongs to another business than before
├── NotAvailable           give up on this table: the account lacks the operation (1002, or 1000)
├── Refused                fix the call: the service understood it and said no
├── Transient              retry (writes only where it certainly took no effect)
│   ├── RateLimited        wait for the window to reset, then retry
│   ├── Unreachable        no connection, a reset, a time-out
│   │   └── GivenUp        send nothing more in this run: no whole response for ten minutes
│   └── BrokenResponse     5xx, HTML, cut JSON: a response came, but not a whole one
│       └── OtherSubject   a whole response that names another contact than was requested
├── Stopped                nothing: the client was stopped before this was sent
├── BudgetSpent            send nothing more: the run's `max_requests` are used up
└── OutcomeUnknown         a write was sent and no response came: reconcile, never resend blindly
"""

from typing import Any


class MarketingApiError(Exception):
    """Root of every error that this package raises. Messages never hold the key."""


class InvalidCall(MarketingApiError):
    """The call does not fit the operation's declaration; `parameter` names the one at fault."""

    def __init__(self, message: str, *, parameter: str = "") -> None:
        super().__init__(message)
        self.parameter = parameter


class LimitNotShared(MarketingApiError):
    """The place through which programs share the rate limit cannot be used: the Redis, or the
    temporary directory."""


class ServiceError(MarketingApiError):
    """The service answered with an error: `code` and `detail` as it sent them (`detail` keeps
    unknown keys, observation 8)."""

    def __init__(
        self, message: str, *, code: int | None = None, detail: dict[str, Any] | None = None
    ) -> None:
        super().__init__(message)
        self.code = code
        self.detail = detail or {}


class AuthenticationFailed(ServiceError):
    """The key is missing, wrong or revoked (1002 on app/me; there or before it has responded, 401
    or 1000). Never retried."""


class OtherBusiness(AuthenticationFailed):
    """The key is accepted, but belongs to another business than the stored data. Never retried."""


class NotAvailable(ServiceError):
    """The operation is unknown or not open to this account (1002, 1000 or 401 where app/me
    responds). Only its tables stay without data."""


class Refused(ServiceError):
    """The service refused the call for its own reason. Repeating it gives the same response."""


class Transient(MarketingApiError):
    """Worth another try, for reads."""


class RateLimited(Transient):
    """429: the service asks to wait for `retry_after` seconds; the limiter waits for a minute at
    most."""

    def __init__(self, message: str, *, retry_after: float) -> None:
        if retry_after > 60:
            message += f"; the service asks to wait for {retry_after / 3600:,.1f} hours"
        super().__init__(message)
        self.retry_after = retry_after


class Unreachable(Transient):
    """No connection, a reset or a time-out. `was_sent` tells whether the request may have taken
    effect."""

    def __init__(self, message: str, *, was_sent: bool) -> None:
        super().__init__(message)
        self.was_sent = was_sent


class GivenUp(Unreachable):
    """No whole response came for ten minutes, so nothing more is sent to the account."""

    def __init__(self, message: str) -> None:
        super().__init__(message, was_sent=False)


class BrokenResponse(Transient):
    """A response that is not whole: 5xx, HTML, cut JSON, no envelope."""


class TooLarge(BrokenResponse):
    """A response over the size limit. Another try would cost as much and fail again."""


class OtherSubject(BrokenResponse):
    """A whole response that names another id than was requested: `named`."""

    def __init__(self, message: str, *, named: int) -> None:
        super().__init__(message)
        self.named = named


class Stopped(MarketingApiError):
    """The client was stopped while the call waited; it was not sent."""


class BudgetSpent(MarketingApiError):
    """The run may send no more requests."""


class OutcomeUnknown(MarketingApiError):
    """A write was sent and no whole response came: it may or may not have taken effect."""
