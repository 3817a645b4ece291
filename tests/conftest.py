"""What makes the whole suite quick without changing what any test sees."""

from __future__ import annotations

from tests import quicker

quicker.install()
