"""Templates of plain texts: what commands print that is longer than a sentence."""

from collections.abc import Callable
from typing import Any

from jinja2 import Environment, StrictUndefined


def text_environment(
    finalize: Callable[[Any], Any] | None = None, **filters: Callable[..., Any]
) -> Environment:
    """What a template names has to be there."""
    made = Environment(undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, finalize=finalize)  # noqa: S701 (plain text)
    made.filters |= {"number": "{:,}".format, **filters}
    return made
