"""Options as the run config of Dagster's UI has them. Not here: which there are (`pipelines.options`)."""

from collections.abc import Iterable
from typing import Any

import dagster as dg

from pipelines.options import Option


def config_fields(options: Iterable[Option]) -> dict[str, dg.Field]:
    """The config schema: those that the UI has. `options.values` reads what a person made of it."""
    return {
        option.name: dg.Field(_type(option), default_value=option.unset, description=option.help) for option in options if not option.in_ui
    }


def _type(option: Option) -> Any:
    if option.choices:
        return dg.Enum(option.name, [dg.EnumValue(choice) for choice in option.choices])
    if option.holds is list:
        return [str]
    return option.holds if option.unset is not None else dg.Noneable(option.holds)
