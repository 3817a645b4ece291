"""The service's known words of refusal: whether the same request can ever be taken, and what a person does about it.

Its specification shows none of them; these are the sandbox's, those of clients of the live service (api-observed rows 1, 3, 5 and 8) and
our own client's. Not here: telling a refusal from a good response (`marketing_api.write_result`).
"""

import re
from typing import NamedTuple


class Refusal(NamedTuple):
    """What is known of a message: `name` has none of its words, `remedy` is what a person does.

    `is_permanent`: the same request is refused again whatever is done to the account, so that its row has to change.
    """

    pattern: re.Pattern[str]
    name: str
    is_permanent: bool
    remedy: str


_NO = r"(?:does(?: not|n['’]t) exist|not found)"
_RETRY = "then `marketing-sync push retry`"
_SYNC_LISTS = "run `marketing-sync sync --only lists`"
#: The first that fits counts.
REFUSALS = (
    Refusal(re.compile("with a mismatch on read-back"), "sent before without effect", False, f"look at the contact, {_RETRY}"),
    Refusal(re.compile("in a column status"), "a status is needed", True, "add a column status to these rows and push them again"),
    Refusal(
        re.compile(f"contact in the (?:source )?list {_NO}"),
        "the contact is not on the list", True, "sync, and push what is then left"
    ),
    Refusal(
        re.compile(rf"no contact has this address|contact is not there any more|\bcontact\b[^.()]{{0,80}} {_NO}"),
        "there is no such contact", False,
        f"correct the address or id; or add the contact (`marketing-sync push contacts`), {_RETRY}",
    ),
    Refusal(re.compile(rf"\blist {_NO}"), "there is no such list", True, f"{_SYNC_LISTS}, correct the list and push the rows again"),
    Refusal(
        re.compile(rf"\bcustom field {_NO}"),
        "the list has no such field", True, f"{_SYNC_LISTS}, correct the column and push the rows again"
    ),
    Refusal(re.compile("already exists"), "it is there already", True, "nothing, unless the contact differs from the row: then push that"),
    Refusal(
        re.compile("not available to this account"),
        "the operation is not open to the account", False, f"ask the service to open it, {_RETRY}"
    ),
    Refusal(re.compile(r"http \d+; is the address right"), "an odd response", False, f"see that MARKETING_API_URL is right, {_RETRY}"),
    Refusal(
        re.compile("is not valid|is required|must be an? |is not allowed|must not be empty|holds half a character"),
        "a value is not valid", True,
        "correct the value in the file of rejected rows and push that file",
    ),
)  # fmt: skip


def known(message: str | None) -> Refusal | None:
    """What is known of the service's message, as the outbox keeps it."""
    return next((each for each in REFUSALS if each.pattern.search((message or "").lower())), None)


def is_permanent(message: str | None) -> bool:
    """Unknown words may pass."""
    return (refusal := known(message)) is not None and refusal.is_permanent
