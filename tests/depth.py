"""How far tests look: as far as minutes allow, or as `make attack` does (`python -m tests.attack marked`)."""

import os

#: An environment variable of the tests alone.
NAME = "TESTS_GO_DEEP"
DEEP = bool(os.environ.get(NAME))


def examples(count: int) -> int:
    """Of Hypothesis."""
    return count if DEEP else max(5, count // 4)
