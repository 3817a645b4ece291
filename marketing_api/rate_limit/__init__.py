"""Client-side rate limiting: requests of an account over all threads and processes of a machine, under the limit that it reports."""

from marketing_api.rate_limit.budget import RequestBudget
from marketing_api.rate_limit.limiter import RateLimiter, shared_path
from marketing_api.rate_limit.report import RateReport, rate_report
from marketing_api.rate_limit.windows import Slot

__all__ = ["RateLimiter", "RateReport", "RequestBudget", "Slot", "rate_report", "shared_path"]
