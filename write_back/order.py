"""What somebody wants pushed, and the plan that was made of it. Not here: making it, and what follows
(`push_service`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from home.settings import Settings, SettingsError, account_named
from marketing_api.pacing import SPECIFIED_RATE
from write_back.input.rows import Rows
from write_back.item import Options, Plan
from write_back.kinds import Kind

#: The account when none is configured: the sandbox's.
SANDBOX_ACCOUNT = "main"


def account_of(settings: Settings, name: str | None) -> str:
    """The account of this name, or the only one there is. Raises SettingsError."""
    names = [connection.account for connection in settings.accounts] or [SANDBOX_ACCOUNT]
    return account_named(name, names)


def rate_of(settings: Settings, account: str) -> float:
    caps = [connection.max_rate for connection in settings.accounts if connection.account == account] or [
        settings.max_rate
    ]
    return min(SPECIFIED_RATE, caps[0] or SPECIFIED_RATE)


@dataclass(frozen=True)
class Order:
    """What is to be pushed, from where (`file` or `query`), and how."""

    kind: Kind
    account: str
    file: Path | None = None
    query: str | None = None
    options: Options = field(default_factory=Options)
    reject_limit: float = 0.05
    verify: str = "sample"


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


def order_of(settings: Settings, kind: Kind, chosen: Mapping[str, Any]) -> Order:
    """What a person chose of `Kind.all_options`, wherever. Raises SettingsError."""
    if (chosen["from"] is None) == (chosen["sql"] is None):
        raise SettingsError("say what to push: either --from or --sql (in the launchpad: from or sql)")
    mapping = dict(chosen["map"])
    if len(mapping) < len(chosen["map"]):
        raise SettingsError("--map names one of our columns twice (in the launchpad: map)")
    own = {each.name: chosen[each.name] for each in fields(Options) if each.name in chosen}
    own |= {"mapping": mapping, "ignore": tuple(chosen["ignore"]), "send_all": chosen["all"]}
    return Order(
        kind,
        account_of(settings, chosen["account"]),
        chosen["from"],
        chosen["sql"],
        Options(**own),
        chosen["reject_limit"],
        chosen["verify"],
    )
