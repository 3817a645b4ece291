"""Look at everything that could keep a sync from working, with what to do about it.

It makes the home where there is none, and changes nothing else."""

import os
import platform
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from home import exits
from home.accounts import connections
from home.door import open_warehouse
from home.exits import HomeError
from home.folder import prepare_home, running, unfinished_erasure
from home.formatting import plural
from home.freshness import ago, standstill
from home.identity import Recognition, check_kind, identity_of
from home.options import JSON, Option
from home.output import Finding, Findings, emit
from home.settings import Settings, SettingsError
from marketing_api import __version__
from marketing_api.clock import utc_now
from marketing_api.redaction import plain
from pipelines.commands import Arguments, command, print_error, says_yes
from pipelines.commands.check import IDENTITY, greeting
from pipelines.commands.probe import MOST_REQUESTS, Probe
from pipelines.fleet import shards, silent
from pipelines.publishing import what_is_published
from upkeep.backups import backup_storage
from warehouse.backup import read_manifest
from warehouse.bookkeeping import died
from warehouse.disk import write_file
from warehouse.errors import WarehouseError, WarehouseLocked
from warehouse.lake import LATE
from warehouse.publish import published_path
from warehouse.sql import rows

Look = Callable[[Settings], Iterator[Finding]]
#: What a night needs beside the warehouse, of which publishing makes two copies for a moment.
_LEAST_DISK = 1_000_000_000
_COPIES = 3
#: How long to wait for a warehouse that another program has open.
_WAIT_S = 2
#: Reading, loading and Dagster, beside what the models may take.
_LEAST_MEMORY = 700_000_000


@command(
    JSON,
    Option("fleet", "instead: every account of every shard, whether it is read in time; for cron"),
    Option(
        "probe",
        "instead: call each read operation once, and report where the service differs from what is expected",
    ),
    Option("yes", "with --probe: do not ask"),
    is_for_all_shards=True,
)
def doctor(arguments: Arguments, settings: Settings) -> int:
    """Exit code 1 when a line is not `ok`, 2 when the home holds data of another business than
    the settings name."""
    if arguments.fleet:
        return _report(arguments, settings, _fleet)
    settings = settings.of_one_shard()
    return _probe(arguments, settings) if arguments.probe else _report(arguments, settings, *_LOOKS)


def _report(arguments: Arguments, settings: Settings, *looks: Look) -> int:
    findings = []
    for look in looks:
        for finding in look(settings):
            findings.append(finding)
            if not arguments.json:
                print(f"{'ok' if finding.is_well else 'NO':<4}{finding.what:<12}{finding.text}", flush=True)
    is_well = all(finding.is_well for finding in findings)
    if arguments.json:
        emit(Findings(is_well, findings))
    is_foreign = any(finding.what == IDENTITY and not finding.is_well for finding in findings)
    return exits.WRONG_USE if is_foreign else exits.DONE if is_well else exits.INCOMPLETE


def _probe(arguments: Arguments, settings: Settings) -> int:
    """Exit code 1 when there are deviations, or nobody agreed."""
    prepare_home(settings.home, settings.lock_seconds)
    with connections(settings) as accounts:
        names = ", ".join(each.account for each in accounts)
        print(
            f"up to {MOST_REQUESTS} requests to {names} each, all of them reads; the report names no "
            "account and no value",
            file=sys.stderr,
        )
        if not (arguments.yes or says_yes("Go on? [y/N] ")):
            return print_error("nothing was requested", exits.INCOMPLETE)
        probes = [Probe(connection, Recognition(settings, connection)) for connection in accounts]
        for number, probe in enumerate(probes, 1):
            probe.run()
            path = settings.home / "logs" / f"probe-{utc_now():%Y%m%dT%H%M%SZ}-{number}.md"
            write_file(path, probe.report().encode())
            found = plural(len(probe.deviations), "deviation")
            print(
                f"{probe.connection.account}: {plural(probe.requests, 'request')}, {found}; {path} "
                "has the report"
            )
            for each in sorted(probe.deviations):
                print(f"  {each.operation}, {each.place}: expected {each.expected}, found {each.found}")
    return exits.INCOMPLETE if any(probe.deviations for probe in probes) else exits.DONE


def _fleet(settings: Settings) -> Iterator[Finding]:
    """Each shard, by the note of its home here or by its manifest in the lake."""
    now = utc_now()
    for name, shard in shards(settings).items():
        late = silent(settings, shard, now)
        what, read_at = name or "accounts", [each.read_at for each in shard.accounts if each.read_at]
        if not shard.is_known:
            nothing = (
                "there is neither a home of it here nor an export of it in the lake (MARKETING_LAKE_URL)"
            )
            yield Finding(what, False, f"{nothing}: `marketing-sync sync` makes both")
        elif late:
            for account, words in late.items():
                yield Finding(what, False, f"account {account}: {words}: is the schedule on?")
        else:
            yield Finding(what, True, f"{plural(len(read_at), 'account')}, read {ago(min(read_at), now)}")


def _programs(settings: Settings) -> Iterator[Finding]:
    packages = f"marketing-sync {__version__}"
    for name in ("duckdb", "dagster", "dbt-core"):
        with suppress(PackageNotFoundError):  # dbt is there for models of one's own
            packages += f", {name} {version(name)}"
    machine = f"{platform.system()} {platform.machine()}"
    yield Finding("programs", True, f"Python {platform.python_version()} on {machine}, {packages}")


def _secrets(settings: Settings) -> Iterator[Finding]:
    for wrong in settings.unknown:
        yield Finding("settings", False, wrong)
    for name in (".env", "accounts.toml"):
        if (file := settings.folder / name).exists():
            is_open = name == ".env" and file.stat().st_mode & 0o077
            text = f"can be read by others on this machine: chmod 600 {file}" if is_open else "is read"
            yield Finding("secrets", not is_open, f"{file} {text}")


def _home(settings: Settings) -> Iterator[Finding]:
    try:
        prepare_home(settings.home, completes=False)
    except HomeError as problem:
        yield Finding("home", False, str(problem))
        return
    yield Finding("home", True, f"{settings.home}, for you alone")
    if left := unfinished_erasure(settings.home):
        yield Finding("forgetting", False, left)
    size = settings.warehouse_path.stat().st_size if settings.warehouse_path.exists() else 0
    free, needed = shutil.disk_usage(settings.home).free, _LEAST_DISK + _COPIES * size
    room = f"{free / 1e9:,.1f} GB free, a night needs up to {needed / 1e9:,.1f} GB"
    advice = "" if free >= needed else ": free some, or move the home (MARKETING_HOME)"
    yield Finding("disk", not advice, f"{room}{advice}")


def _memory(settings: Settings) -> Iterator[Finding]:
    try:
        lines = dict(line.split(":", 1) for line in Path("/proc/meminfo").read_text().splitlines())
        free = int(lines["MemAvailable"].split()[0]) * 1024
    except (OSError, KeyError, ValueError):  # another system; it is the least likely trouble
        return
    advice = "" if free >= _LEAST_MEMORY else ": end other programs"
    may_take = f"the models use up to {settings.models_memory} (MARKETING_MODELS_MEMORY)"
    yield Finding("memory", not advice, f"{free / 1e9:,.1f} GB available, {may_take}{advice}")


def _warehouse(settings: Settings) -> Iterator[Finding]:
    if not settings.warehouse_path.exists():
        yield Finding("warehouse", True, "nothing has been synced yet: `marketing-sync sync` makes it")
        return
    try:
        with open_warehouse(replace(settings, lock_seconds=_WAIT_S), read_only=True) as connection:
            rows(connection, "set timezone = 'UTC'")
            newest = rows(connection, "select max(as_of) from sync.coverage")[0][0]
            is_dead = died(running(settings.home))
            dead = rows(connection, f"from sync.runs select started_at where {is_dead}")
    except WarehouseLocked as problem:
        yield Finding("warehouse", True, f"in use by {problem.holder}, which others wait for")
        return
    except WarehouseError as problem:
        yield Finding("warehouse", False, str(problem))
        return
    now = utc_now()
    read = f"read {ago(newest, now)}" if newest else "nothing has been read yet"
    if late := standstill(newest, now, settings.alert_after):
        read = f"{late}: is the schedule on? `marketing-sync sync` reads now"
    yield Finding("warehouse", not late, read)
    for (started,) in dead:
        when = f"the run of {started:%Y-%m-%d %H:%M} UTC ended without being recorded"
        yield Finding("runs", False, f"{when}: `marketing-sync sync` resumes it")


def _published(settings: Settings) -> Iterator[Finding]:
    is_there = published_path(settings.home).exists() or not settings.warehouse_path.exists()
    yield Finding("published", is_there, what_is_published(settings, utc_now()))


def _backup(settings: Settings) -> Iterator[Finding]:
    if settings.backup_url:
        try:
            manifest, now = read_manifest(backup_storage(settings)), utc_now()
        except WarehouseError as problem:
            yield Finding("backup", False, str(problem))
            return
        is_well = manifest is not None and now - manifest.made_at <= LATE
        made = f"made {ago(manifest.made_at, now)}" if manifest else "there is none"
        yield Finding("backup", is_well, made if is_well else f"{made}: `marketing-sync backup` says why")


def _accounts(settings: Settings) -> Iterator[Finding]:
    try:
        check_kind(settings)
    except (SettingsError, HomeError) as problem:
        yield Finding(IDENTITY, False, str(problem))
        return
    yield Finding(IDENTITY, True, plain(str(identity_of(settings.home))))
    with connections(settings) as accounts:
        if settings.is_sandbox:
            yield Finding(
                "account",
                True,
                "none is configured, so the embedded sandbox stands in; `marketing-sync init` connects yours",
            )
        for connection in accounts:
            found, skew = greeting(connection, Recognition(settings, connection))
            yield found
            if skew:
                differs = f"this machine's clock differs from the service's by {abs(skew)}"
                yield Finding("clock", False, f"{differs}: set it right, or let the system keep it")


def _user(settings: Settings) -> Iterator[Finding]:
    owner = settings.home.stat().st_uid if settings.home.exists() else os.getuid()
    if owner != os.getuid():
        yield Finding(
            "user", False, f"the home belongs to user {owner}: run as that one, or change its owner"
        )


_LOOKS = (_programs, _secrets, _user, _home, _memory, _warehouse, _published, _backup, _accounts)
