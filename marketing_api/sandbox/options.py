"""How a sandbox is configured, and building one from it."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from marketing_api.operations import ALL
from marketing_api.sandbox.app import App
from marketing_api.sandbox.faults import Faults
from marketing_api.sandbox.seeded_account import Clock, Origin
from marketing_api.sandbox.switches import RATE_SPECIFIED, Switches
from marketing_api.sandbox.tenant import Journal, Tenant, Window
from marketing_api.sandbox.world import World

DEFAULT_KEY = "sandbox-key"


@dataclass(frozen=True, slots=True)
class AccountOptions:
    """One more account on the same server."""

    name: str
    key: str
    seed: int = 1
    contacts: int = 600


@dataclass(frozen=True)
class Options:
    """`now` (unix seconds) makes the clock stand still; without it the clock is the real one. Delays are (median, p99) in
    milliseconds. `faults` maps names to `probability[@operations]`. With `accounts` there is no account under `key`."""

    port: int = 0
    key: str = DEFAULT_KEY
    seed: int = 1
    contacts: int = 600
    now: int | None = None
    timezone: str = "UTC"
    rate_limit: int = RATE_SPECIFIED  # requests a second; 0: no limit
    switches: Mapping[str, str] = field(default_factory=dict)
    faults: Mapping[str, str] = field(default_factory=dict)
    fault_seed: int = 1
    stall_seconds: float = 60.0
    revoke_after: int = 0
    latency_ms: tuple[float, float] = (0.0, 0.0)
    jitter_ms: tuple[float, float] = (0.0, 0.0)
    state: Path | None = None
    accounts: tuple[AccountOptions, ...] = ()


def build(options: Options) -> App:
    """The accounts that the options ask for, with everything replayed that their journal remembers."""
    journal = Journal(options.state) if options.state else None
    accounts = options.accounts or (AccountOptions("main", options.key, options.seed, options.contacts),)
    tenants = [_tenant(options, account, journal) for account in accounts]
    app = App(tenants, journal)
    if journal is not None:
        _replay(app, journal)
    return app


def _tenant(options: Options, account: AccountOptions, journal: Journal | None) -> Tenant:
    base = int(time.time()) if options.now is None else options.now
    origin = journal.origin(account.name) if journal else None
    if origin is None:
        origin = Origin(account.seed, account.contacts, base, options.timezone)
        if journal is not None:
            journal.begin(account.name, origin)
    faults = Faults(options.fault_seed, options.stall_seconds)
    for name, chance in options.faults.items():
        faults.set(name, chance)
    return Tenant(
        account.name,
        account.key,
        World(origin, Clock(options.now)),
        Window(options.rate_limit),
        Switches(options.switches),
        faults,
        options.revoke_after,
    )


def _replay(app: App, journal: Journal) -> None:
    """Carry out again what the journal holds, each write at its own time."""
    by_name = {tenant.name: tenant for tenant in app.tenants.values()}
    journal.is_replaying = True
    for line in journal.lines():
        tenant = by_name.get(line["account"])
        if tenant is None:
            continue
        if "advance" in line:
            tenant.world.clock.advance(line["advance"])
        elif "operation" in line:
            tenant.world.account.plan(line["at"])
            app.carry_out(tenant, ALL[line["operation"]], line["params"], line["fields"], line["at"], 0.0)
    for tenant in by_name.values():
        tenant.settle(float("inf"))
    journal.is_replaying = False
