"""The values that the steps of a push pass on: the order, its plan, and the figures of a run.

Not here: the steps (`push_service`), the report (`push_report`)."""

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

#: An audience sync of fewer rows has the limit of 100 rows, because one invalid row of three would
#: stop it.
_FEW = 100


@dataclass(frozen=True)
class Order:
    """What to push, its source (`file` or `query`), and how. `encoding`, `sheet`: of the file;
    `first`: how many of its rows; None: all. `reverts`: the push that this one reverts, with
    `with_tags` its tags, too; it then has neither file nor query."""

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
    """A plan with what it was made from. `revision`: of the outbox before planning; `forgotten`:
    the people that it leaves out; `rate`: expected requests a second."""

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
        """Why nothing is sent; None unless too many rows are invalid."""
        bad = self.plan.bad_count
        if bad <= self.limit:
            return None
        return (
            f"{count_of(bad, 'row is', 'rows are')} invalid, and {self.limit_words}: correct them, "
            "or allow more with --reject-limit (in Dagster's launchpad: reject_limit)"
        )


@dataclass
class Ran:
    """The figures of a run: its own push, if it has one; the earlier pushes that it resumed; its
    requests, and the seconds that they waited for the rate limit; why it ended early."""

    job: str
    account: str
    push_id: int | None = None
    run: str = field(default_factory=lambda: uuid.uuid4().hex)
    began_at: dt.datetime = field(default_factory=utc_now)
    requests: int = 0
    waited_s: float = 0.0
    earlier: frozenset[int] = frozenset()
    stopped: str | None = None
