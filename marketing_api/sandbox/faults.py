"""Faults: what can go wrong between the service and its client, how often, and for which operations.

A draw depends on the seed, the call and how often it was requested before: the same run meets the same faults whatever the
order of its requests, and a repeated call draws anew. Not here: how a broken response is sent (`server`).
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from marketing_api.sandbox.chance import salt


@dataclass(frozen=True, slots=True)
class Fault:
    """`has_effect`: a write is carried out although its response is lost or an error."""

    name: str
    has_effect: bool
    doc: str
    writes_only: bool = False


FAULTS: tuple[Fault, ...] = (
    Fault("500-before", False, "HTTP 500 and no effect"),
    Fault("500-after", True, "HTTP 500 although the effect took place"),
    Fault("502-html", False, "HTTP 502 with an HTML page and no effect"),
    Fault("html-200", True, "HTTP 200 with an HTML page"),
    Fault("reset", False, "the connection is reset before a response; no effect"),
    Fault("cut-json", True, "HTTP 200 with JSON that ends early, though the length is right"),
    Fault("cut-body", True, "the connection closes in the middle of the response"),
    Fault("stall", True, "the response comes only after `stall-seconds`"),
    Fault("429", False, "a refusal although the limit is not reached"),
    Fault("lost-answer", True, "a write takes effect and the connection closes without a response", writes_only=True),
    Fault("1002", False, "the error of an unavailable operation"),
)
BY_NAME = {fault.name: fault for fault in FAULTS}


@dataclass(frozen=True, slots=True)
class Chance:
    """How likely a fault is, from 0 to 1, and for which operations; for all when there are none."""

    probability: float
    operations: frozenset[str] = frozenset()

    def __str__(self) -> str:
        return f"{self.probability:g}" + (f"@{','.join(sorted(self.operations))}" if self.operations else "")


def read_chance(text: str) -> Chance:
    """`0.02` or `0.02@emailmarketing/getcoupon,goal/show`; ValueError when it is neither."""
    head, _, tail = text.partition("@")
    probability = float(head)
    if not 0 <= probability <= 1:
        raise ValueError(f"a probability is from 0 to 1, not {head}")
    return Chance(probability, frozenset(word.strip().lower() for word in tail.split(",") if word.strip()))


class Faults:
    """The faults that are switched on."""

    def __init__(self, seed: int = 1, stall_seconds: float = 60.0, chances: Mapping[str, str] | None = None) -> None:
        self._seed, self.stall_seconds = seed, stall_seconds
        self.chances: dict[str, Chance] = {}
        self._requested: Counter[int] = Counter()
        for name, chance in (chances or {}).items():
            self.set(name, chance)

    def set(self, name: str, chance: str) -> None:
        if name not in BY_NAME:
            raise ValueError(f"there is no fault {name!r}; there are {', '.join(BY_NAME)}")
        self.chances[name] = read_chance(chance)
        if not self.chances[name].probability:
            del self.chances[name]

    def draw(self, operation: str, params: str, *, is_write: bool) -> Fault | None:
        """The fault that this request meets, if any."""
        call = hash((operation, params))
        self._requested[call] += 1
        at = salt(self._seed, operation, params, self._requested[call]) / 0x100000000
        for name, chance in self.chances.items():
            if (chance.operations and operation not in chance.operations) or (BY_NAME[name].writes_only and not is_write):
                continue
            if at < chance.probability:
                return BY_NAME[name]
            at -= chance.probability
        return None
