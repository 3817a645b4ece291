"""The options of sync and push as config in Dagster's launchpad. They aren't in `home.options`,
since Dagster takes seconds to import."""

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Any

import dagster as dg
from pydantic import Field, create_model

from home.options import CONFIRM, CONFIRM_WORD, Option
from home.settings import SettingsError
from home.values import join_choices


def config_class(name: str, options: Iterable[Option], base: type[Any] = dg.Config) -> type[Any]:
    """The class of a step's or a resource's config, with a field per option that the UI offers.
    `read_values` reads its values."""

    def config_type(option: Option) -> Any:
        if option.choices:
            # Dagster's message about a wrong value contains this name.
            title = join_choices(option.choices)
            return StrEnum(title, [(choice, choice) for choice in option.choices])
        if option.holds is list:
            return list[str]
        return option.holds if option.unset is not None else option.holds | None

    fields: dict[str, Any] = {
        option.name: (config_type(option), Field(default=option.unset, description=option.help))
        for option in options
        if not option.in_ui
    }
    return create_model(
        name, __base__=base, __doc__=base.__doc__, __module__=base.__module__, **fields
    )


def read_values(options: Iterable[Option], config: Mapping[str, Any] | dg.Config) -> dict[str, Any]:
    """A run config's values by name. Raises SettingsError."""
    values = dict(config)
    return {option.name: option.read_config(values.get(option.name)) for option in options}


def check_confirmed(chosen: Mapping[str, Any]) -> None:
    """Raises SettingsError unless the config contains the word that confirms sending, which nobody
    types by mistake."""
    if chosen[CONFIRM.name].strip().lower() != CONFIRM_WORD:
        raise SettingsError(
            f"nothing was sent: to send from the UI, add `{CONFIRM.name}: {CONFIRM_WORD}` to the "
            "config of this step"
        )
