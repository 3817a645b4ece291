"""The page about the sandbox says what the code declares."""

from __future__ import annotations

from marketing_api.sandbox.faults import FAULTS
from marketing_api.sandbox.page import PAGE, render
from marketing_api.sandbox.switches import SWITCHES


def test_page_is_not_stale() -> None:
    assert PAGE.read_text(encoding="utf-8") == render(), "run: python -m marketing_api.sandbox.page"


def test_page_names_every_switch_and_fault() -> None:
    text = render()
    assert all(f"`--{switch.name}`" in text for switch in SWITCHES)
    assert all(f"`{fault.name}`" in text for fault in FAULTS)
