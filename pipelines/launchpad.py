"""The options of sync and push as Dagster's launchpad has them. Apart from `options`, since Dagster takes
seconds to import."""

from collections.abc import Iterable, Mapping
from typing import Any

import dagster as dg

from home.options import CONFIRM, CONFIRM_WORD, Option
from home.settings import SettingsError


def config_fields(options: Iterable[Option]) -> dict[str, dg.Field]:
    """Those that the UI has, as the config schema of a step; `values` reads what a person made of it."""

    def kind(option: Option) -> Any:
        if option.choices:
            # Its name is what Dagster says that a wrong value is not.
            return dg.Enum(
                f"{', '.join(option.choices[:-1])} or {option.choices[-1]}",
                [dg.EnumValue(choice) for choice in option.choices],
            )
        if option.holds is list:
            return [str]
        return option.holds if option.unset is not None else dg.Noneable(option.holds)

    return {
        option.name: dg.Field(kind(option), default_value=option.unset, description=option.help)
        for option in options
        if not option.in_ui
    }


def values(options: Iterable[Option], config: Mapping[str, Any]) -> dict[str, Any]:
    """A run config's values by name. Raises SettingsError."""
    return {option.name: option.of(config.get(option.name)) for option in options}


def check_confirmed(chosen: Mapping[str, Any]) -> None:
    """Whatever sends by a run config has to be confirmed by a word, which no slip and no click types. Raises
    SettingsError."""
    if chosen[CONFIRM.name].strip().lower() != CONFIRM_WORD:
        raise SettingsError(
            f"nothing was sent: to send from the UI, add `{CONFIRM.name}: {CONFIRM_WORD}` to the config "
            "of this step"
        )
