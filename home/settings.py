"""Settings: declared once here, read from the environment, `.env` and `accounts.toml`. No other
module reads the environment. Not here: how texts become values (`values`), accounts and keys
(`account_files`)."""

import datetime as dt
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from home import values as read
from home.account_files import (
    DeclaredAccount,
    connections_of,
    declared_accounts,
    key_in,
    read_dotenv,
)
from home.values import SettingsError as SettingsError
from home.values import did_you_mean, read_value
from marketing_api.exchange import BODY_LIMIT, Connection
from marketing_api.pacing import SPECIFIED_RATE
from marketing_api.redaction import Secret
from warehouse.policies import Kept, PersonalData

#: Bytes of a push's input: a million contacts with ten fields take a third of it.
INPUT_LIMIT = 500_000_000
#: The variable that names the shard of a run.
SHARD_TAG = "marketing-sync/shard"
_PREFIX = "MARKETING_"
#: Variables without a field; MARKETING_CODE_HOST is for `deploy/workspace.yaml`.
_OTHER_VARIABLES = (
    "MARKETING_HOME",
    "MARKETING_API_URL",
    "MARKETING_CODE_HOST",
    *(f"MARKETING_{name}{end}" for name in ("API_KEY", "MAIL_URL") for end in ("", "_FILE")),
)
#: File systems that other machines may have mounted, too; `fuseblk` is a disk.
_NETWORK = re.compile(
    r"nfs4?|cifs|smb3?|smbfs|9p|afs|ceph|lustre|beegfs|gpfs|glusterfs|fuse(\..*)?"
)
_MOUNTS = Path("/proc/self/mountinfo")


def setting(reader: Callable[[str], Any], default: Any, doc: str, variable: str = "") -> Any:
    """A field with its reader and one-line description. Its environment variable has the field's
    name, unless `variable` is given."""
    return field(default=default, metadata={"read": reader, "doc": doc, "variable": variable})


@dataclass(frozen=True)
class Settings:
    """All settings. `accounts` is empty if nothing is configured: then the sandbox is used."""

    home: Path
    accounts: tuple[Connection, ...] = ()
    folder: Path = Path()  # the folder of `.env`, accounts.toml and activations.toml
    # the shards of accounts.toml while none is picked; then there are no accounts
    shards: tuple[str, ...] = ()
    # MARKETING_ variables that are no settings, each with the most similar one
    unknown: tuple[str, ...] = ()
    is_default_home: bool = False  # MARKETING_HOME is not set
    is_sandbox_chosen: bool = False  # --sandbox, or a terminal shows the user that there is no key
    history_start: dt.date = setting(
        read.day, dt.date(2015, 1, 1), "first day that the first sync reads"
    )
    lookback_days: int = setting(read.whole, 7, "days that every night reads again")
    goal_domains: tuple[int, ...] = setting(
        read.numbers,
        (),
        "ids of tracked domains, comma-separated, in addition to those of webhooks",
    )
    timezone: str = setting(read.zone, "UTC", "time zone of accounts that don't report one")
    max_rate: float | None = setting(
        read.rate, None, "requests a second per account, to use less than the service's rate limit"
    )
    night_minutes: int = setting(
        read.count,
        30,
        "a night reads all timelines and coupons if that takes at most this many minutes",
    )
    max_age_days: int = setting(
        read.count, 7, "maximum age of a contact's timeline and coupons, in days"
    )
    max_requests: int | None = setting(
        read.count, None, "maximum number of requests of a run, for all accounts together"
    )
    until: dt.time | None = setting(
        read.clock_time,
        None,
        "time after which a run sends no request, like 06:00, in the schedule's time zone",
    )
    shrink_limit: float = setting(
        read.share,
        0.5,
        "shrink check: refuse a listing that lost ten rows or more, and more than this share",
    )
    lock_seconds: float = setting(
        read.whole, 120, "how long to wait while another program uses the warehouse"
    )
    attribution_hours: str = setting(
        read.windows,
        "120",
        "hours in which a touch counts for an outcome; by channel: email=120,visit=24",
    )
    rate_messages: int = setting(
        read.count,
        100,
        "messages that a rate needs; with fewer it is marked (is_small_sample)",
    )
    kept: Kept = setting(
        read.kept,
        Kept(),
        "days to keep each kind of data; list only changes, like bodies=ever,logs=30",
        "MARKETING_KEEP",
    )
    models_memory: str = setting(
        read.memory, "2GB", "memory limit for building models, and for each custom table"
    )
    schedule_cron: str = setting(read.cron, "0 2 * * *", "when the nightly sync runs")
    schedule_timezone: str = setting(read.zone, "UTC", "time zone of the schedule")
    personal_data: PersonalData = setting(
        read.personal_data,
        PersonalData.KEEP,
        f"personal data in the published copy and report: {read.join_choices(PersonalData)}",
    )
    personal_key: Secret | None = setting(
        read.personal_key,
        None,
        "key of the hashes (default: `personal.key` in the home, created on first use)",
    )
    alert_url: str = setting(
        read.webhook,
        "",
        "webhook address for alerts: failed runs, pushes that need a person, unusual days",
    )
    alert_after_hours: int = setting(
        read.count, 30, "hours after which an account without a complete reading is reported"
    )
    mail_url: read.MailServer | None = setting(
        read.mail_server,
        None,
        "mail server for new reports, like smtps://USER:PASSWORD@HOST, or smtp://… for STARTTLS; "
        "or `MARKETING_MAIL_URL_FILE`, a file with the address",
    )
    mail_from: str = setting(read.mailbox, "", "sender address of reports")
    mail_to: tuple[str, ...] = setting(read.mailboxes, (), "recipients of reports, comma-separated")
    mail_on: str = setting(
        read.mail_on, "nightly", "nightly, or a weekday: the first new report from that day on"
    )
    activations: bool = setting(
        read.switch, False, "on: every nightly sync pushes the audience syncs of activations.toml"
    )
    shard: str = setting(
        str,
        "",
        "the shard in accounts.toml to use; its home is a folder with this name in the home",
    )
    run_tags: str = setting(
        read.tags,
        "",
        "tags of scheduled runs for the launcher, as JSON; {shard} is replaced by the shard's name",
    )
    network_home: bool = setting(
        read.switch,
        False,
        "on: allow a home on a network file system that only this machine uses",
    )
    budget_url: Secret | None = setting(
        read.redis_url,
        None,
        "Redis that shares the rate limit among machines, like redis://HOST:6379/0",
    )
    backup_dir: str = setting(read.folder, "", "folder for a backup after every run and push")
    body_limit: int = setting(
        read.size, BODY_LIMIT, "largest response, unpacked; larger ones are rejected"
    )
    input_limit: int = setting(
        read.size, INPUT_LIMIT, "largest file, unpacked, or query result of a push"
    )
    query_seconds: int = setting(read.count, 600, "time limit of a query or a custom table")
    log_level: str = setting(
        read.log_level,
        "WARNING",
        "lowest level that commands log to standard error, from DEBUG to CRITICAL",
        "MARKETING_LOG",
    )
    log_format: str = setting(
        read.log_format, "text", "format of the log: text, or json with one object per line"
    )
    sandbox_url: str = setting(
        read.service_address,
        "",
        "address of a running sandbox, to use instead of the embedded one",
    )
    sandbox_contacts: int = setting(read.whole, 150, "contacts of the embedded sandbox")

    @property
    def is_sandbox(self) -> bool:
        """True if no account is configured, so that the embedded sandbox is used."""
        return not self.accounts and not self.shards

    @property
    def is_key_missing(self) -> bool:
        """True if no account is configured, and the sandbox was not chosen."""
        return self.is_sandbox and not (self.is_sandbox_chosen or self.sandbox_url)

    def of_run(self, tags: Mapping[str, str]) -> "Settings":
        """The settings of the shard that a run's tags name; these settings without shards. Raises
        SettingsError."""
        shard = tags.get(SHARD_TAG, "")
        if not self.shards:
            if shard in ("", self.shard):
                return self
            raise SettingsError(
                f"the run is for shard {shard}, but this process has "
                f"MARKETING_SHARD={self.shard or '(not set)'}"
            )
        if shard not in self.shards:
            raise SettingsError(
                f"the run needs a tag {SHARD_TAG} with one of the shards of accounts.toml: "
                f"{', '.join(self.shards)}"
            )
        return load_settings(self.folder, shard=shard)

    def of_one_shard(self) -> "Settings":
        """These settings, if they are of one home. Raises SettingsError if a shard must be
        picked."""
        if self.shards:
            raise SettingsError(
                "accounts.toml declares shards: set MARKETING_SHARD to one of "
                f"{', '.join(self.shards)}"
            )
        return self

    @property
    def homes(self) -> dict[str, Path]:
        """The homes by shard; without shards, one with an empty name."""
        return {shard: self.home / shard for shard in self.shards} or {self.shard: self.home}

    @property
    def zones(self) -> dict[str, str]:
        """By account: the configured time zones, which override the account's."""
        return {account.account: account.timezone for account in self.accounts if account.timezone}

    @property
    def alert_after(self) -> dt.timedelta:
        return dt.timedelta(hours=self.alert_after_hours)

    @property
    def warehouse_path(self) -> Path:
        return self.home / "warehouse.duckdb"


#: Environment variable → the field.
VARIABLES = {
    setting_field.metadata["variable"] or f"{_PREFIX}{setting_field.name.upper()}": setting_field
    for setting_field in fields(Settings)
    if setting_field.metadata
}


def missing_key(settings: Settings) -> SettingsError:
    """The error that prevents reading the sandbox by mistake."""
    return SettingsError(
        f"no key is configured in {settings.folder.resolve()}. Run the command in the folder with "
        "`.env` or accounts.toml, or set MARKETING_API_URL and MARKETING_API_KEY. Outside a "
        "terminal, the sandbox is used only with --sandbox or MARKETING_SANDBOX_URL. Nothing was "
        "read or sent"
    )


#: The account if none is configured: the sandbox's.
SANDBOX_ACCOUNT = "main"


def account_of(settings: Settings, name: str | None) -> str:
    """The account with this name; without a name, the only account, which is the sandbox's if none
    is configured. Raises SettingsError."""
    names = [connection.account for connection in settings.accounts] or [SANDBOX_ACCOUNT]
    if name is not None and name in names:
        return name
    if name is None and len(names) == 1:
        return names[0]
    known = ", ".join(names)
    if name is None:
        raise SettingsError(
            f"choose an account with --account (in the launchpad: account): {known}"
        )
    raise SettingsError(
        f"no account is named {name!r}{did_you_mean(name, names)}; choose one of these: {known}"
    )


def estimated_rate(settings: Settings, account: str) -> float:
    """The expected requests per second. The limit that an account reports is only known while
    requests are sent."""
    caps = [
        connection.max_rate for connection in settings.accounts if connection.account == account
    ] or [settings.max_rate]
    return min(SPECIFIED_RATE, caps[0] or SPECIFIED_RATE)


def load_settings(
    folder: Path,
    environment: Mapping[str, str] | None = None,
    *,
    shard: str = "",
    reads_keys: bool = True,
) -> Settings:
    """From `folder`/.env, `folder`/accounts.toml and the environment, which has priority; of the
    shard if one is named. Without `reads_keys`, for commands that send no request, keys stay empty.
    Raises SettingsError."""
    texts = read_dotenv(folder / ".env") | dict(os.environ if environment is None else environment)
    texts |= {"MARKETING_SHARD": shard} if shard else {}
    texts["MARKETING_MAIL_URL"] = key_in(texts, "MARKETING_MAIL_URL")
    values = {
        setting_field.name: read_value(variable, setting_field.metadata["read"], texts[variable])
        for variable, setting_field in VARIABLES.items()
        if texts.get(variable)
    }
    declared = declared_accounts(folder / "accounts.toml")
    shard = values.get("shard", "")
    to_pick = _shards_to_pick(declared, shard)
    accounts = (
        () if to_pick else connections_of(declared, shard, texts, values, reads_keys=reads_keys)
    )
    own_home = texts.get("MARKETING_HOME", "").strip()
    place = own_home or f"data/{'live' if accounts or to_pick else 'sandbox'}"
    settings = Settings(
        home=(folder / Path(place).expanduser() / shard).resolve(),
        accounts=accounts,
        folder=folder,
        shards=to_pick,
        unknown=tuple(_find_unknown(texts, declared)),
        is_default_home=not own_home,
        **values,
    )
    _check_home(settings)
    _check_mail(settings)
    check_apart(settings)
    return settings


def _shards_to_pick(declared: Sequence[DeclaredAccount], picked: str) -> tuple[str, ...]:
    """The shards that accounts.toml declares; none if one is picked. Raises SettingsError if the
    picked one is unknown."""
    shards = tuple(dict.fromkeys(account.shard for account in declared if account.shard))
    if picked and picked not in shards:
        raise SettingsError(
            f"MARKETING_SHARD={picked!r}: no account of accounts.toml has this shard; there are "
            f"{', '.join(shards) or 'none'}"
        )
    return () if picked else shards


def _find_unknown(texts: Mapping[str, str], declared: Sequence[DeclaredAccount]) -> Iterator[str]:
    """Settings without effect, each with the one that was most likely meant."""
    keys = [account.key_env for account in declared if account.key_env]
    known = {*VARIABLES, *_OTHER_VARIABLES, *keys}
    if declared and texts.get("MARKETING_API_URL"):
        yield "MARKETING_API_URL is ignored, since accounts.toml exists: move its account there"
    # the common prefix would make all names similar
    own = [name.removeprefix(_PREFIX) for name in known]
    for name in sorted(texts.keys() - known):
        if name.startswith(_PREFIX):
            meant = did_you_mean(name.removeprefix(_PREFIX), own, prefix=_PREFIX)
            yield f"{name} is not a known setting{meant}; it is ignored"


def network_file_system(folder: Path) -> str:
    """The type of network file system that the folder (which need not exist) is on; empty for a
    disk, or if the system does not report it."""
    lines = (
        _MOUNTS.read_text(encoding="utf-8", errors="replace").splitlines()
        if _MOUNTS.exists()
        else []
    )
    longest = ""
    kind = ""
    for line in lines:  # proc(5): ID, parent, device, root, mount point … - type
        left, _, right = line.partition(" - ")
        point = re.sub(r"\\(\d{3})", lambda code: chr(int(code[1], 8)), left.split()[4])
        # the last mount at a place hides the others
        if folder.resolve().is_relative_to(point) and len(point) >= len(longest):
            longest = point
            kind = right.split()[0]
    return kind if _NETWORK.fullmatch(kind) else ""


def _check_home(settings: Settings) -> None:
    """Parts of the program can't open names that are not valid UTF-8, or that a locale without
    UTF-8 can't represent."""
    home = str(settings.home)
    if any("\ud800" <= letter <= "\udfff" for letter in home):
        raise SettingsError(
            "the home's name is not valid UTF-8: set LC_ALL=C.UTF-8, or MARKETING_HOME to another "
            "folder"
        )
    # With such names, DuckDB puts its log elsewhere or takes a backslash for a slash, and Dagster
    # decodes addresses of files.
    if re.search(r"[?\\]|%[0-9A-Fa-f]{2}", home):
        raise SettingsError(
            f"the home {home} has a ?, a backslash or a % with two digits in its name: set "
            "MARKETING_HOME to a folder without them"
        )
    if not settings.network_home and (kind := network_file_system(settings.home)):
        raise SettingsError(
            f"the home {home} is on a network file system ({kind}), where two machines would not "
            "see each other's locks and could damage the warehouse: set MARKETING_HOME to a "
            "folder on a disk of this machine, or set MARKETING_NETWORK_HOME=on if no other "
            "machine ever uses this home"
        )


def check_apart(settings: Settings, folder: str = "") -> None:
    """Neither the backup folder (default: the configured one) nor the home may be inside the other,
    since each backup replaces the one before. Raises SettingsError."""
    folder = folder or settings.backup_dir
    if not folder:
        return
    place = Path(folder).expanduser().resolve()
    for home in map(Path.resolve, settings.homes.values()):
        if place.is_relative_to(home) or home.is_relative_to(place):
            raise SettingsError(
                f"the backup folder {place} and the home {home} overlap: set MARKETING_BACKUP_DIR "
                "to a folder that is neither in the home nor above it"
            )


def _check_mail(settings: Settings) -> None:
    needed = ("mail_url", "mail_from", "mail_to")
    missing = [f"MARKETING_{name.upper()}" for name in needed if not getattr(settings, name)]
    if 0 < len(missing) < len(needed):
        raise SettingsError(
            f"the report can't be mailed without {' and '.join(missing)}: set all settings of "
            "mail or none"
        )
