"""What people may choose about a push's plan. Not here: choices about sending."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Options:
    """`mapping`: our column → the input's. `ignore`: columns of the input that are left out. `send_all`: send what is known to be
    so already, too (never activities again). `clear_empty`: an empty cell empties its custom field. `max_rows`: refuse more.
    """

    mapping: Mapping[str, str] = field(default_factory=dict)
    ignore: tuple[str, ...] = ()
    send_all: bool = False
    clear_empty: bool = False
    max_rows: int | None = None
