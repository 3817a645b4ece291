"""Faults: what can go wrong between the service and its client, how often, and for which
operations.

A draw depends on the seed, on the call, and on how often it was requested before. So the same run
meets the same faults in any order of its requests, and a repeated call draws again."""

import random
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple


@dataclass(frozen=True, slots=True)
class Fault:
    """`doc` says what happens. A write takes effect in spite of a fault that `has_effect`."""

    doc: str
    has_effect: bool = False
    writes_only: bool = False


FAULTS: Mapping[str, Fault] = {
    "429": Fault("HTTP 429 although the limit is not reached"),
    "500-before": Fault("HTTP 500 and no effect"),
    "500-after": Fault("HTTP 500 although the effect took place", True),
    "lost-answer": Fault(
        "a write takes effect and the connection closes without a response", True, True
    ),
    "stall": Fault("the response is delayed by `stall-seconds`", True),
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
    return Chance(probability, tail.lower().split(",") if tail else [])


class Faults:
    """`known`: the faults that can be set, by name."""

    def __init__(
        self, seed: int, chances: Mapping[str, str], known: Mapping[str, Fault] = FAULTS
    ) -> None:
        self._seed = seed
        self.known = known
        self.chances: dict[str, Chance] = {}
        self._requested: Counter[str] = Counter()
        for name, chance in chances.items():
            self.set(name, chance)

    def set(self, name: str, chance: str) -> None:
        """ValueError when there is no such fault, or it is no chance."""
        if name not in self.known:
            raise ValueError(f"there is no fault {name!r}; there are {', '.join(self.known)}")
        self.chances[name] = read_chance(chance)

    def draw(self, operation: str, params: str, *, is_write: bool) -> str:
        """The name of the fault that the request meets, empty for none."""
        call = f"{self._seed} {operation} {params}"
        self._requested[call] += 1
        at = random.Random(f"{call} {self._requested[call]}").random()
        for name, chance in self.chances.items():
            is_meant = not chance.operations or operation in chance.operations
            if is_meant and (is_write or not self.known[name].writes_only):
                at -= chance.probability
                if at < 0:
                    return name
        return ""
