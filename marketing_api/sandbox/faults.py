"""Faults: what can go wrong between the service and its client, how often, and for which operations.

A draw depends on the seed, the call and how often it was requested before: the same run meets the same faults
whatever the order of its requests, and a repeated call draws anew."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import NamedTuple

from marketing_api.sandbox.seed import salt


@dataclass(frozen=True, slots=True)
class Fault:
    """`doc` says what happens. A write takes effect in spite of a fault that `has_effect`."""

    doc: str
    has_effect: bool = False
    writes_only: bool = False


FAULTS: Mapping[str, Fault] = {
    "429": Fault("a refusal although the limit is not reached"),
    "500-before": Fault("HTTP 500 and no effect"),
    "500-after": Fault("HTTP 500 although the effect took place", True),
    "lost-answer": Fault("a write takes effect and the connection closes without a response", True, True),
    "stall": Fault("the response comes only after `stall-seconds`", True),
}


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
    """`known` are those that can be set, by name."""

    def __init__(
        self,
        seed: int = 1,
        chances: Mapping[str, str] = MappingProxyType({}),
        known: Mapping[str, Fault] = FAULTS,
    ) -> None:
        self._seed, self._known = seed, known
        self.chances: dict[str, Chance] = {}
        self._requested: Counter[int] = Counter()
        for name, chance in chances.items():
            self.set(name, chance)

    def set(self, name: str, chance: str) -> None:
        """ValueError when there is no such fault, or it is no chance."""
        if name not in self._known:
            raise ValueError(f"there is no fault {name!r}; there are {', '.join(self._known)}")
        self.chances[name] = read_chance(chance)
        if not self.chances[name].probability:
            del self.chances[name]

    def draw(self, operation: str, params: str, *, is_write: bool) -> tuple[str, bool]:
        """The name of the fault that the request meets, empty for none, and whether it takes effect."""
        if not self.chances:
            return "", True
        call = hash((operation, params))
        self._requested[call] += 1
        at = salt(self._seed, operation, params, self._requested[call]) / 0x100000000
        for name, chance in self.chances.items():
            is_meant = not chance.operations or operation in chance.operations
            if is_meant and (is_write or not self._known[name].writes_only):
                if at < chance.probability:
                    return name, self._known[name].has_effect
                at -= chance.probability
        return "", True
