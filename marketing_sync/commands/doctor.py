"""Check settings, disk, accounts and everything else a sync needs, and say what to fix.

It creates a missing home, and changes nothing else."""

import datetime as dt
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from home import exits
from home.accounts import open_connections
from home.door import open_warehouse
from home.exits import HomeError
from home.failures import explain_error
from home.folder import list_running, prepare_home, unfinished_erasure
from home.formatting import count_of
from home.freshness import format_age
from home.identity import Recognition, check_kind, identity_of
from home.options import JSON, Option
from home.output import Finding, Findings, print_json
from home.settings import Settings, SettingsError
from marketing_api.clock import TOLERANCE, utc_now
from marketing_api.redaction import plain
from marketing_sync import account_check
from marketing_sync.account_check import IDENTITY, check_account
from marketing_sync.commands import declare_command
from pipelines.monitoring import find_silent, read_shards
from pipelines.published_copy import describe_current_copy, list_failed_custom_tables
from upkeep.backup import backup_folder, check_place
from warehouse.bookkeeping import died_condition
from warehouse.errors import WarehouseError, WarehouseLocked
from warehouse.publish import NEWEST_READING, published_path
from warehouse.sql import fetch_rows, fetch_value
from write_back.audience_syncs import FILE, check_nightly

Check = Callable[[Settings], Iterator[Finding]]
#: The disk space that a night needs: this, and the warehouse with the two copies that publishing
#: makes for a moment.
_LEAST_DISK = 1_000_000_000
_COPIES = 3
#: The age of a late backup: a single night may be missed.
_LATE = dt.timedelta(days=2)
#: How long to wait for a warehouse that another program has open.
_WAIT_S = 2


@declare_command(
    Option(
        "accept_business",
        "confirm that the account now belongs to another business or address",
        str,
        metavar="ACCOUNT",
    ),
    Option("yes", "with --accept-business: don't ask"),
    JSON,
    is_for_all_shards=True,
)
def doctor(settings: Settings, accept_business: str | None, yes: bool, json: bool) -> int:
    """The exit code is 1 if a line is not `ok`, and 2 if the home has the data of another business.
    With shards, set MARKETING_SHARD to check one shard. Otherwise, `doctor` only checks that every
    account was read in time."""
    if accept_business is not None:
        return account_check.accept_business(
            settings.of_one_shard(), accept_business, is_agreed=yes
        )
    findings = []
    for check in (_check_readings,) if settings.shards else _CHECKS:
        for finding in _run_check(check, settings):
            findings.append(finding)
            if not json:
                print(
                    f"{'ok' if finding.is_well else 'NO':<4}{finding.what:<12}{finding.text}",
                    flush=True,
                )
    if json:
        print_json(Findings(all(finding.is_well for finding in findings), findings))
    return _exit_code(findings)


def _exit_code(findings: Sequence[Finding]) -> int:
    failed = [finding for finding in findings if not finding.is_well]
    if any(finding.what == IDENTITY for finding in failed):
        return exits.WRONG_USE
    return exits.INCOMPLETE if failed else exits.DONE


def _run_check(check: Check, settings: Settings) -> Iterator[Finding]:
    """The findings of a check; an error of the system is a finding, so that the other checks still
    run."""
    try:
        yield from check(settings)
    except OSError as error:
        yield Finding(check.__name__.removeprefix("_check_"), False, explain_error(error)[0])


def _check_readings(settings: Settings) -> Iterator[Finding]:
    """Whether the accounts of every shard are read in time, from the status file of its home."""
    if not (settings.shards or settings.warehouse_path.exists()):
        return
    now = utc_now()
    for name, shard in read_shards(settings).items():
        late = find_silent(settings, shard, now)
        subject = name or "readings"
        read_at = [account.read_at for account in shard.accounts if account.read_at]
        if not shard.is_here:
            yield Finding(
                subject, False, "its home is missing: run `doctor` where it is, or sync it here"
            )
        elif late:
            for account, words in late.items():
                advice = "is the schedule on? `marketing-sync sync` reads now"
                yield Finding(subject, False, f"account {account}: {words}: {advice}")
        else:
            yield Finding(
                subject,
                True,
                f"{count_of(len(read_at), 'account')}, read {format_age(min(read_at), now)}",
            )


def _check_secrets(settings: Settings) -> Iterator[Finding]:
    for message in settings.unknown:
        yield Finding("settings", False, message)
    for name in (".env", "accounts.toml"):
        if (file := settings.folder / name).exists():
            stat = file.stat()
            # this program reads the file of another user through its group
            mode = 0o600 if stat.st_uid == os.getuid() else 0o640
            is_open = name == ".env" and stat.st_mode & 0o077 & ~mode
            advice = f"can be read by others on this machine: chmod {mode:o} {file}"
            yield Finding("secrets", not is_open, f"{file} {advice if is_open else 'is read'}")


def _check_home(settings: Settings) -> Iterator[Finding]:
    try:
        prepare_home(settings.home, completes=False)
    except HomeError as error:
        yield Finding("home", False, str(error))
        return
    yield Finding("home", True, f"{settings.home}, readable only by you")
    erasure = unfinished_erasure(settings.home)
    if erasure:
        yield Finding("forgetting", False, erasure)
    size = settings.warehouse_path.stat().st_size if settings.warehouse_path.exists() else 0
    free = shutil.disk_usage(settings.home).free
    needed = _LEAST_DISK + _COPIES * size
    room = f"{free / 1e9:,.1f} GB free, a night needs up to {needed / 1e9:,.1f} GB"
    advice = "" if free >= needed else ": free some space, or move the home (MARKETING_HOME)"
    yield Finding("disk", not advice, f"{room}{advice}")


def _check_warehouse(settings: Settings) -> Iterator[Finding]:
    if not settings.warehouse_path.exists():
        yield Finding(
            "warehouse", True, "nothing has been synced yet: `marketing-sync sync` makes it"
        )
        return
    try:
        with open_warehouse(replace(settings, lock_seconds=_WAIT_S), read_only=True) as connection:
            fetch_rows(connection, "set timezone = 'UTC'")
            newest = fetch_value(connection, NEWEST_READING)
            is_dead = died_condition(list_running(settings.home))
            dead = fetch_rows(connection, f"from sync.runs select started_at where {is_dead}")
    except WarehouseLocked as error:
        yield Finding("warehouse", True, f"in use by {error.holder}; other programs wait for it")
        return
    except WarehouseError as error:
        yield Finding("warehouse", False, str(error))
        return
    yield Finding(
        "warehouse",
        True,
        f"read {format_age(newest, utc_now())}" if newest else "nothing was read yet",
    )
    for (started,) in dead:
        when = f"the run of {started:%Y-%m-%d %H:%M} UTC ended without being recorded"
        yield Finding("runs", False, f"{when}: `marketing-sync sync` resumes it")


def _check_published(settings: Settings) -> Iterator[Finding]:
    is_there = published_path(settings.home).exists() or not settings.warehouse_path.exists()
    yield Finding("published", is_there, describe_current_copy(settings, utc_now()))
    for message in list_failed_custom_tables(settings):
        yield Finding(
            "custom", False, f"{message}; correct the file and run `marketing-sync publish`"
        )


def _check_activations(settings: Settings) -> Iterator[Finding]:
    if not (settings.activations or (settings.folder / FILE).exists()):
        return
    try:
        count = check_nightly(settings)
    except SettingsError as error:
        yield Finding("activations", False, str(error))
        return
    nightly = (
        "every night"
        if settings.activations
        else "by `push activations` (MARKETING_ACTIVATIONS is off)"
    )
    yield Finding(
        "activations", True, f"{count_of(count, 'activation')} of {FILE}, pushed {nightly}"
    )


def _check_backup(settings: Settings) -> Iterator[Finding]:
    if not settings.backup_dir:
        yield Finding("backup", True, "none: MARKETING_BACKUP_DIR is not set")
        return
    try:
        snapshot = check_place(settings, backup_folder(settings))
        now = utc_now()
    except WarehouseError as error:
        yield Finding("backup", False, str(error))
        return
    is_well = snapshot is not None and -TOLERANCE <= now - snapshot.made_at <= _LATE
    made = f"made {format_age(snapshot.made_at, now)}" if snapshot else "there is none"
    advice = "" if is_well else ": run `marketing-sync backup` to see why"
    yield Finding("backup", is_well, f"{made}{advice}")


def _check_accounts(settings: Settings) -> Iterator[Finding]:
    try:
        check_kind(settings)
    except (SettingsError, HomeError) as error:
        yield Finding(IDENTITY, False, str(error))
        return
    yield Finding(IDENTITY, True, plain(str(identity_of(settings.home))))
    with open_connections(settings) as accounts:
        if settings.is_sandbox:
            yield Finding(
                "account",
                True,
                "none is configured, so the embedded sandbox is used; connect yours with "
                "`marketing-sync init`",
            )
        for connection in accounts:
            found, skew = check_account(connection, Recognition(settings, connection))
            yield found
            if skew:
                differs = f"this machine's clock differs from the service's by {abs(skew)}"
                yield Finding(
                    "clock", False, f"{differs}: correct it, or turn on time synchronization"
                )


_CHECKS = (
    _check_secrets,
    _check_home,
    _check_warehouse,
    _check_readings,
    _check_published,
    _check_activations,
    _check_backup,
    _check_accounts,
)
