"""Text templates that commands print. Not here: tables (`grids`)."""

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, StrictUndefined, Template


@cache
def text_template(
    module: str, finalize: Callable[[Any], Any] | None = None, **filters: Callable[..., Any]
) -> Template:
    """The template next to the module's file, with the same name. Undefined names in it are
    errors."""
    environment = Environment(  # noqa: S701 (plain text)
        undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, finalize=finalize
    )
    environment.filters |= {"number": "{:,}".format, **filters}
    return environment.from_string(Path(module).with_suffix(".jinja").read_text(encoding="utf-8"))
