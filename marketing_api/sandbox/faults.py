"""Faults: what can go wrong between the service and its client, how often, and for which operations.

A draw depends on the seed, the call and how often it was requested before: the same run meets the same faults
whatever the order of its requests, and a repeated call draws anew. Not here: how a broken response is sent
(`server`)."""

import tomllib
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from marketing_api.sandbox.seed import salt


@dataclass(frozen=True, slots=True)
class Fault:
    """What can go wrong; `faults.toml` declares them and says what the members mean."""

    name: str
    doc: str
    has_effect: bool = False
    writes_only: bool = False
    error: str = ""
    status: int = 0
    body: str = ""
    kind: str = "text/plain"
    mishap: str = ""
    ends_early: bool = False
    stalls: bool = False


_DECLARED = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
FAULTS: Mapping[str, Fault] = {name: Fault(name, **members) for name, members in _DECLARED.items()}


class Chance(NamedTuple):
    """How likely a fault is, from 0 to 1, and for which operations; for all when there are none."""

    probability: float
    operations: list[str]

    def __str__(self) -> str:
        return f"{self.probability:g}" + "@" * bool(self.operations) + ",".join(self.operations)


def read_chance(text: str) -> Chance:
    """`0.02` or `0.02@emailmarketing/getcoupon,goal/show`; ValueError when it is neither."""
    head, _, tail = text.partition("@")
    probability = float(head)
    if not 0 <= probability <= 1:
        raise ValueError(f"a probability is from 0 to 1, not {head}")
    return Chance(probability, sorted(word.strip().lower() for word in tail.split(",") if word.strip()))


class Faults:
    def __init__(
        self, seed: int = 1, stall_seconds: float = 60.0, chances: Mapping[str, str] = MappingProxyType({})
    ) -> None:
        self._seed, self.stall_seconds = seed, stall_seconds
        self.chances: dict[str, Chance] = {}
        self._requested: Counter[int] = Counter()
        for name, chance in chances.items():
            self.set(name, chance)

    def set(self, name: str, chance: str) -> None:
        if name not in FAULTS:
            raise ValueError(f"there is no fault {name!r}; there are {', '.join(FAULTS)}")
        self.chances[name] = read_chance(chance)
        if not self.chances[name].probability:
            del self.chances[name]

    def draw(self, operation: str, params: str, *, is_write: bool) -> Fault | None:
        if not self.chances:
            return None
        call = hash((operation, params))
        self._requested[call] += 1
        at = salt(self._seed, operation, params, self._requested[call]) / 0x100000000
        for name, chance in self.chances.items():
            is_meant = not chance.operations or operation in chance.operations
            if is_meant and (is_write or not FAULTS[name].writes_only):
                if at < chance.probability:
                    return FAULTS[name]
                at -= chance.probability
        return None
