"""What the command line logs, and how: to standard error, without addresses of people at any level."""

from __future__ import annotations

import logging

from marketing_api.discretion import without_addresses


class _Discreet(logging.Formatter):
    """Tracebacks and texts of libraries included: they quote values."""

    def format(self, record: logging.LogRecord) -> str:
        return without_addresses(super().format(record))


def start_logging(level: str) -> None:
    """Log from `level` on. The lines that urllib3 writes for debugging are left out: they quote every parameter sent."""
    handler = logging.StreamHandler()
    handler.setFormatter(_Discreet("%(levelname)s %(name)s: %(message)s"))
    logging.basicConfig(level=level, handlers=[handler])
    logging.getLogger("urllib3").setLevel(max(logging.getLogger().level, logging.INFO))
