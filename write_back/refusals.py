"""The service's known refusals: whether it may accept the same request later, and what a person
does about it.

The specification lists none. `refusals.toml` has those of the sandbox, of clients of the live
service (observations 1, 3, 5 and 8), and of our own client. Not here: telling a refusal from a good
response (`marketing_api.write_result`)."""

import re
import tomllib
from pathlib import Path
from typing import NamedTuple


class Refusal(NamedTuple):
    """A known refusal. `name` has none of the service's words; `remedy` is what a person does about
    a row of a push, `remedy_of_call` about a request of `marketing-sync call`.

    `is_permanent`: the same request is always refused, whatever changes in the account, so its row
    has to change."""

    pattern: re.Pattern[str]
    name: str
    is_permanent: bool
    remedy: str
    remedy_of_call: str = ""


_DECLARED = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
#: The first that matches counts.
REFUSALS = tuple(
    Refusal(re.compile("|".join(refusal.pop("patterns"))), **refusal)
    for refusal in _DECLARED["refusals"]
)


def find_refusal(message: str | None) -> Refusal | None:
    """The refusal with this message, as the outbox stores it."""
    text = (message or "").lower()
    return next((refusal for refusal in REFUSALS if refusal.pattern.search(text)), None)


def is_permanent(message: str | None) -> bool:
    """Unknown refusals may pass."""
    refusal = find_refusal(message)
    return refusal is not None and refusal.is_permanent
