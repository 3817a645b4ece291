"""What makes the whole suite quick without changing what any test sees; how it is shared between two workers is in `make test`."""

from __future__ import annotations

import pytest
from hypothesis import settings

from tests.depth import examples

settings.register_profile("here", max_examples=examples(100))
settings.load_profile("here")

#: Fixtures that cost a worker seconds: their tests stay together, and begin early.
_TOGETHER = ("nights", "built", "first_night")
#: Short ones last, so that both workers end at the same time.
_FIRST = ("tests/independent", "tests/attack", "tests/pipelines", "tests/warehouse")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """With `--dist loadgroup`, a file or the users of a costly fixture are one piece of work."""
    for item in items:
        shared = [name for name in _TOGETHER if name in getattr(item, "fixturenames", ())]
        item.add_marker(pytest.mark.xdist_group(shared[0] if shared else item.nodeid.partition("::")[0]))
    items.sort(key=_place)


def _place(item: pytest.Item) -> int:
    (group,) = next(item.iter_markers("xdist_group")).args
    return 0 if group in _TOGETHER else next((place for place, name in enumerate(_FIRST, 1) if group.startswith(name)), len(_FIRST) + 1)
