"""The client-side rate limiter: the requests of an account, over all threads and processes of a machine, under its limit.

The service counts requests in windows of one second and responds with 429 to what goes over. `RateLimiter.wait` gives each request its
slot and `learn` takes in what the service reports (`RateReport`): the limit is learnt from the responses, starting at 10 a second;
a cap may set it lower. After a 429 everybody waits for the window to reset, and the refused request goes first.

Not a token bucket or a leaky bucket: a bucket does not know where windows begin. Sent evenly, requests straddle the edges as
delays vary, so it needs a margin below the limit, and a bucket that is full lets two bursts into one window. Measured against
fixed windows of 15 with delays of 5 to 60 ms, two processes of eight threads: evenly at 15.0/s, sixteen 429s a minute; none only at
14.0/s; a library's bucket 14.3/s at four times the processor. Slots in the middle of the learnt windows use 98.9 to 99.4 % of
the limit with none refused (`tests/benchmarks/bench_pacing.py`). Where no windows are seen, pacing is even with an adaptive margin.

`limiter` waits, `pacing` decides which moments are slots and learns the windows, `report` reads what the service says,
`shared_state` is the locked file between processes. Others import from this door only.
"""

from marketing_api.rate_limit.limiter import RateLimiter, RequestBudget
from marketing_api.rate_limit.pacing import SPECIFIED_RATE, Slot
from marketing_api.rate_limit.report import RateReport, rate_report
from marketing_api.rate_limit.shared_state import shared_path

__all__ = ["SPECIFIED_RATE", "RateLimiter", "RateReport", "RequestBudget", "Slot", "rate_report", "shared_path"]
