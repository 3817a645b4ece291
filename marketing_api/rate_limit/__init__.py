"""The client-side rate limiter: the requests of an account, over all threads and processes, under its limit: of one machine, or of
all machines that share a Redis (`MARKETING_BUDGET_URL`).

The service counts requests in windows of one second and responds with 429 to what goes over. `RateLimiter.wait` gives each request its
slot and `learn` takes in what the service reports (`RateReport`): the limit is learnt from the responses, starting at 10 a second;
a cap may set it lower. After a 429 everybody waits for the window to reset, and the refused request goes first.

Not a token bucket: a bucket does not know where windows begin, so it needs a margin below the limit; what was measured is in
`docs/decisions/rate-limit.md`. Slots in the middle of the learnt windows use 98.9 to 99.4 % of the limit with none refused.

`limiter` waits, `pacing` decides which moments are slots and learns the windows, `report` reads what the service says,
`shared_state` is the locked file between processes, `redis_state` what machines share. Others import from this door only.
"""

from marketing_api.rate_limit.limiter import RateLimiter, RequestBudget
from marketing_api.rate_limit.pacing import SPECIFIED_RATE, Slot
from marketing_api.rate_limit.report import RateReport, rate_report
from marketing_api.rate_limit.shared_state import shared_path

__all__ = ["SPECIFIED_RATE", "RateLimiter", "RateReport", "RequestBudget", "Slot", "rate_report", "shared_path"]
