"""What makes the whole suite quick without changing what any test sees."""

from __future__ import annotations

import pytest
from hypothesis import settings

from tests.depth import examples

settings.register_profile("here", max_examples=examples(100))
settings.load_profile("here")

#: The long ones first: files are handed out in this order, so that both workers end at the same time.
_FIRST = ("tests/independent", "tests/attack", "tests/pipelines", "tests/warehouse")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=_place)


def _place(item: pytest.Item) -> int:
    return next((place for place, name in enumerate(_FIRST) if item.nodeid.startswith(name)), len(_FIRST))
