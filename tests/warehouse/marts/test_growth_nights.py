"""Nights whose truth is known beside the marts: list growth and account totals say it, and say it for
ever."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.attack.growth import lived
from tests.depth import DEEP

#: Each is one building of models more: 3 s of the processor.
NIGHTS = 10 if DEEP else 4


@pytest.mark.attack
@pytest.mark.deep
def test_nights_are_told_as_they_were_and_no_observed_day_changes(tmp_path: Path) -> None:
    """Late registrations, moves, merges, deletions and re-adds; missed nights, a broken listing, another time
    zone, a rebuild."""
    found = lived(
        tmp_path, seed=3 if DEEP else 11, nights=NIGHTS
    )  # of four nights, seed 11 has one of everything
    assert found.differences == []
    assert found.changed == 0
    assert found.observed > (3000 if DEEP else 500)
    happened = {name for row in found.truth.values() for name, value in row.items() if value}
    assert happened >= {
        "joined_count",
        "moved_in_count",
        "left_count",
        "moved_out_count",
        "unsubscribed_count",
        "bounced_count",
    }
