"""What a push is while it goes its way: an order, the plan of it, and what a run does of it.

Not here: the steps (`push_service`), what becomes of it in words (`push_report`)."""

import datetime as dt
import uuid
from dataclasses import dataclass, field
from pathlib import Path

from home.formatting import count_of
from marketing_api.clock import utc_now
from warehouse.forgetting import Forgotten
from write_back.input.rows import Rows
from write_back.item import Options, Plan
from write_back.kinds import Kind

#: A share of fewer rows says nothing where nobody is there to correct them: their limit is that of
#: 100 rows.
_FEW = 100


@dataclass(frozen=True)
class Order:
    """What is to be pushed, from where (`file` or `query`), and how. `encoding`, `sheet`: of the
    file; `first`: how many of its rows, None for all. `reverts`: the push that it undoes,
    `with_tags` its tags, too; it has neither file nor query then."""

    kind: Kind
    account: str
    file: Path | None = None
    query: str | None = None
    options: Options = field(default_factory=Options)
    reject_limit: float = 0.05
    verify: str = "sample"
    encoding: str | None = None
    sheet: str | None = None
    first: int | None = None
    reverts: int | None = None
    with_tags: bool = False


@dataclass(frozen=True)
class Planned:
    """A plan with what it was made from. `revision`: the outbox's before it was looked into;
    `forgotten`: the people that it leaves out; `rate`: requests a second to reckon with."""

    order: Order
    rows: Rows = field(repr=False)
    plan: Plan
    revision: int
    forgotten: Forgotten = field(repr=False)
    rate: float

    @property
    def _limited_count(self) -> int:
        return max(self.plan.row_count, _FEW if self.order.options.is_standing else 0)

    @property
    def limit(self) -> int:
        """How many rows may be invalid."""
        return int(round(self.order.reject_limit * self._limited_count, 6))

    @property
    def limit_words(self) -> str:
        share = f"{100 * self.order.reject_limit:g} % of {count_of(self._limited_count, 'row')}"
        return f"at most {self.limit:,} may be invalid, {share}"

    @property
    def refusal(self) -> str | None:
        """Why nothing is sent, in words; None unless too many rows are bad."""
        bad = self.plan.bad_count
        if bad <= self.limit:
            return None
        return (
            f"{count_of(bad, 'row is', 'rows are')} invalid, and {self.limit_words}: correct them, "
            "or allow more with --reject-limit (in the launchpad: reject_limit)"
        )


@dataclass
class Ran:
    """What a run does for an account: its own push, if it has one, the earlier ones that it goes on
    with, sending or reading back, what it costs, in requests and in seconds that they waited for
    the limit, and why it ended early."""

    job: str
    account: str
    push_id: int | None = None
    run: str = field(default_factory=lambda: uuid.uuid4().hex)
    began_at: dt.datetime = field(default_factory=utc_now)
    requests: int = 0
    waited_s: float = 0.0
    earlier: frozenset[int] = frozenset()
    stopped: str | None = None
