"""Run the real command line against the server, in a process of its own, and judge what it leaves behind."""

import os
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import duckdb

from tests import warm
from tests.pipelines.leftovers import contents
from tests.waiting import HANGS_S

from .compare import compare
from .limits import Asked
from .server import Service
from .truth import Case


@dataclass
class Run:
    code: int | None  # None: killed
    output: str
    seconds: float


def environment(service: Service, home: Path) -> dict[str, str]:
    """Ours without any MARKETING_ setting of the person who runs the tests."""
    kept = {
        name: value for name, value in os.environ.items() if not name.startswith(("MARKETING_", "DAGSTER_"))
    }
    return kept | {
        "MARKETING_API_URL": service.url,
        "MARKETING_API_KEY": service.account.key,
        "MARKETING_HOME": str(home),
    }


def sync(service: Service, home: Path, *, module: str = "marketing_sync.cli") -> Run:
    """`sync --reads-only` to its end; from an empty folder, so that nobody's `.env` is read."""
    elsewhere = home.parent / "elsewhere"
    elsewhere.mkdir(exist_ok=True)
    began = time.monotonic()
    process = warm.Command(module, ["sync", "--reads-only"], elsewhere, environment(service, home))
    try:
        output = "".join(process.communicate(timeout=2 * HANGS_S))
    except subprocess.TimeoutExpired:
        process.kill()
        output = "".join(process.communicate())
        return Run(None, output, time.monotonic() - began)
    return Run(process.returncode, output, time.monotonic() - began)


def discrepancies(service: Service, home: Path, run: Run, *, may_fail: bool = False) -> list[str]:
    """Everything wrong after a whole run; `may_fail`: exit code 1 is right too, as data was missing."""
    case = Case(service.account, service.variants)
    found: list[str] = []
    if run.code not in ((0, 1) if may_fail else (0,)):
        found.append(f"exit code {run.code} after {run.seconds:.0f} s, ends with: {run.output[-1500:]}")
    warehouse = home / "warehouse.duckdb"
    if not warehouse.exists():
        return [*found, "there is no warehouse.duckdb"]
    found += map(str, compare(warehouse, case))
    found += _rejected(warehouse)
    found += _manners(service)
    if run.output.count(service.account.key):
        found.append("the key stands in the output")
    key = service.account.key.encode()
    found += [f"the key stands in {place}" for place, content in contents(home) if key in content]
    return found


def _rejected(warehouse: Path) -> list[str]:
    with duckdb.connect(str(warehouse), read_only=True) as connection:
        rows = connection.execute("select * from sync.rejected_records").fetchall()
    return [f"sync.rejected_records has {len(rows)} rows, e.g. {str(rows[0])[:600]}"] if rows else []


def _manners(service: Service) -> list[str]:
    """How the requests behaved: within the limit, nothing asked twice, the per-contact questions once."""
    found = []
    worst = max(service.log.per_window().values(), default=0)
    if worst > service.window.limit:
        found.append(f"{worst} requests were let through in one window: a fault of the test server")
    doubted = "app/me" if service.variants.missing else ""  # missing ones look like a refused key (row 1)
    repeats = [entry for entry in service.log.repeats() if entry.operation != doubted]
    if repeats:
        found.append(
            f"{len(repeats)} questions were asked again after a whole answer, e.g. {_shown(repeats[0])}"
        )
    found += _once_each(service)
    strangers = [
        entry
        for entry in service.log.entries
        if entry.was_counted and entry.status == 401 != service.variants.error_status
    ]
    return found + ([f"{len(strangers)} requests without the right key"] if strangers else [])


def _once_each(service: Service) -> Iterator[str]:
    """One timeline per contact and one coupon question per distinct address, nothing else."""
    log, down = service.log, service.variants.missing | service.variants.broken
    if down & {"emailmarketing/getlists", "emailmarketing/getcontacts"}:
        return
    contacts = {str(member.contact_id) for member in service.account.members}
    addresses = {member.email.lower() for member in service.account.members if _is_address(member.email)}
    for operation, name, wanted in (
        ("emailmarketing/getcontacttimeline", "id", contacts),
        ("emailmarketing/getcoupon", "email", addresses),
    ):
        if operation in down:
            continue
        asked = Counter(entry.param(name).lower() for entry in log.of(operation) if entry.was_answered)
        if set(asked) != wanted:
            found = sorted(set(asked) ^ wanted)
            yield f"{operation}: asked for {len(asked)}, due {len(wanted)}, e.g. {found[:3]}"


def _is_address(email: str) -> bool:
    return "@" in email


def _shown(entry: Asked) -> str:
    return f"{entry.operation} {dict(entry.params)}"
