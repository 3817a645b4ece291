"""What a push is while it goes its way: an order, the plan of it, and what a run does of it.

Not here: the steps (`push_service`), what becomes of it in words (`push_report`)."""

import datetime as dt
import uuid
from dataclasses import dataclass, field
from pathlib import Path

from marketing_api.clock import utc_now
from write_back.input.rows import Rows
from write_back.item import Options, Plan
from write_back.kinds import Kind


@dataclass(frozen=True)
class Order:
    """What is to be pushed, from where (`file` or `query`), and how. `is_standing`: it says again and again
    how everything should be (an audience sync); of rows that are so, and of those that were rejected before,
    nothing is kept or told again."""

    kind: Kind
    account: str
    file: Path | None = None
    query: str | None = None
    options: Options = field(default_factory=Options)
    reject_limit: float = 0.05
    verify: str = "sample"
    is_standing: bool = False


@dataclass(frozen=True)
class Planned:
    """A plan with what it was made from. `revision`: the outbox's before it was looked into; `rate`: requests
    a second to reckon with."""

    order: Order
    rows: Rows = field(repr=False)
    plan: Plan
    revision: int
    rate: float

    @property
    def refusal(self) -> str | None:
        """Why nothing is sent, in words; None unless too many rows are bad."""
        limit, share = self.order.reject_limit, self.plan.bad_share
        words = (
            f"{100 * share:.1f} % of the rows are not valid, more than the {100 * limit:g} % of the limit:"
            " correct them, or allow more with --reject-limit (in the launchpad: reject_limit)"
        )
        return words if share > limit else None


@dataclass
class Ran:
    """What a run does for an account: its own push, if it has one, the earlier ones that it goes on with,
    sending or reading back, what it costs, in requests and in seconds that they waited for the limit, and why
    it ended early."""

    job: str
    account: str
    push_id: int | None = None
    run: str = field(default_factory=lambda: uuid.uuid4().hex)
    began_at: dt.datetime = field(default_factory=utc_now)
    requests: int = 0
    waited_s: float = 0.0
    earlier: frozenset[int] = frozenset()
    stopped: str | None = None
