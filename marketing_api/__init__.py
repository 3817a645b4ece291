"""The service: what it offers, how to request it, what comes back, and a sandbox that replaces
it."""

import zoneinfo

#: The rules of time zones come from the package tzdata. Those of an old system differ from DuckDB's
#: where clocks changed lately.
zoneinfo.reset_tzpath(())

#: Of the whole distribution.
__version__ = "1.0.0"
