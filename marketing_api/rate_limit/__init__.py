"""The client-side rate limiter: the requests of an account, over all threads and processes, under its limit:
of one machine, or of all machines that share a Redis (`MARKETING_BUDGET_URL`).

`RateLimiter.wait` gives each request its slot and `learn` takes in what the service reports (`RateReport`).
After a 429 everybody waits for the window to reset, and the refused request goes first. What was measured is
in `docs/decisions/rate-limit.md`.

`limiter` waits, `pacing` decides which moments are slots and learns the windows, `report` reads what the
service says, `shared_state` is the locked file between processes, `redis_state` what machines share. Others
import from this door only."""

from marketing_api.rate_limit.limiter import RateLimiter, RequestBudget
from marketing_api.rate_limit.pacing import SPECIFIED_RATE, Slot
from marketing_api.rate_limit.report import RateReport, limit_in_body, limit_in_headers, rate_report
from marketing_api.rate_limit.shared_state import shared_path

__all__ = [
    "SPECIFIED_RATE",
    "RateLimiter",
    "RateReport",
    "RequestBudget",
    "Slot",
    "limit_in_body",
    "limit_in_headers",
    "rate_report",
    "shared_path",
]
