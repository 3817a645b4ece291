"""The switches: each makes the sandbox of a test behave as one observation says (docs/how-sure.md) instead of
as specified. Declared in `switches.toml`; what a switch does is in `app`, `payloads`, or in the product where
it is a part of `--as-observed`."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

NUMBER = "a number"


@dataclass(frozen=True, slots=True)
class Switch:
    """`values` are its positions, the specified one first; a single one is any whole number."""

    name: str
    row: str
    values: str
    doc: str
    ground: str = "observed"  # or variant: the specification says both; or assumed: nobody has shown it

    @property
    def default(self) -> str:
        return self.values.split()[0]

    @property
    def choices(self) -> tuple[str, ...]:
        words = tuple(self.values.split())
        return words if len(words) > 1 else ()

    def check(self, value: str) -> str:
        """The value as it is kept; ValueError with what is allowed."""
        word = value.strip().lower()
        if word in self.choices or (not self.choices and word.isdecimal()):
            return word
        raise ValueError(f"{self.name}: {value!r} is not allowed; choose {', '.join(self.choices) or NUMBER}")


_DECLARED = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
SWITCHES: Mapping[str, Switch] = {
    name: Switch(name, **members) for name, members in _DECLARED["switches"].items()
}

#: Positions in which clients of the live service have met it.
AS_OBSERVED: dict[str, str] = _DECLARED["as-observed"]


class Switches(dict[str, str]):
    def __init__(self, values: Mapping[str, str]) -> None:
        super().__init__({name: switch.default for name, switch in SWITCHES.items()})
        for name, value in values.items():
            self.set(name, value)

    def set(self, name: str, value: str) -> None:
        if name not in SWITCHES:
            raise ValueError(f"there is no switch {name!r}; there are {', '.join(SWITCHES)}")
        self[name] = SWITCHES[name].check(value)

    def number(self, name: str) -> int:
        return int(self[name])

    def is_on(self, name: str) -> bool:
        return self[name] == "on"

    @property
    def changed(self) -> set[str]:
        """Those that are not as specified."""
        return {name for name, value in self.items() if value != SWITCHES[name].default}
