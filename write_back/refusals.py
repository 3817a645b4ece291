"""The service's known words of refusal: whether the same request can ever be taken, and what a
person does about it.

Its specification shows none of them; these are the sandbox's, those of clients of the live service
(observations 1, 3, 5 and 8) and our own client's; `refusals.toml` lists them. Not here: telling a
refusal from a good response (`marketing_api.write_result`)."""

import re
import tomllib
from pathlib import Path
from typing import NamedTuple


class Refusal(NamedTuple):
    """What is known of a message: `name` has none of its words, `remedy` is what a person does.

    `is_permanent`: the same request is refused again whatever is done to the account, so that its
    row has to change."""

    pattern: re.Pattern[str]
    name: str
    is_permanent: bool
    remedy: str


#: The first that fits counts.
REFUSALS = tuple(
    Refusal(re.compile("|".join(refusal.pop("patterns"))), **refusal)
    for refusal in tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))[
        "refusals"
    ]
)


def find_refusal(message: str | None) -> Refusal | None:
    """What is known of the service's message, as the outbox keeps it."""
    return next(
        (refusal for refusal in REFUSALS if refusal.pattern.search((message or "").lower())), None
    )


def is_permanent(message: str | None) -> bool:
    """Unknown words may pass."""
    return (refusal := find_refusal(message)) is not None and refusal.is_permanent
