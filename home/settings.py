"""Settings: declared once here, read from the environment, `.env` and `accounts.toml`; nothing else reads the
environment."""

import datetime as dt
import json
import math
import os
import re
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any, TypeVar
from zoneinfo import ZoneInfo

from dotenv.parser import parse_stream

from marketing_api.exchange import BODY_LIMIT, Connection
from marketing_api.redaction import Secret
from warehouse.policies import GROUP_MIN, LEAST_KEY, Kept, PersonalData

#: Bytes of the input of a push: a million contacts with ten fields have a third of it.
INPUT_LIMIT = 500_000_000
QUERY_SECONDS = 600
WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")

T = TypeVar("T")

#: Names the shard that a run works on.
SHARD_TAG = "marketing-sync/shard"
#: Folders of the home that shards have theirs beside.
_TAKEN = ("dagster", "logs", "tmp")


class SettingsError(Exception):
    """A setting is missing or malformed: the message names it and what to write."""


def account_named(name: str | None, names: Sequence[str]) -> str:
    """The account that is meant: the one of this name, or without one the only one there is. Raises
    SettingsError."""
    if name in names:
        return str(name)
    if name is None and len(names) == 1:
        return names[0]
    near = [f" (did you mean {each}?)" for each in get_close_matches(name or "", names, 1)]
    unknown = f"no account is named {name!r}{''.join(near)}; " if name else ""
    raise SettingsError(f"{unknown}say which account with --account: {', '.join(names)}")


def _reader(convert: Callable[[str], T], hint: str) -> Callable[[str], T]:
    """`convert`, with every failure as a ValueError that gives the hint."""

    def read(text: str) -> T:
        try:
            return convert(text)
        except Exception:  # a time zone's name brings about several kinds
            raise ValueError(hint) from None

    return read


def _text(found: re.Match[str] | None) -> str:
    """What a pattern matched. Raises ValueError where it did not."""
    if found is None:
        raise ValueError
    return found[0]


def _within(least: float, number: float, most: float) -> float:
    if not least <= number <= most:
        raise ValueError(number)
    return number


def _without_blanks(text: str) -> str:
    """Around the commas and equals signs of a list."""
    return ",".join("=".join(word.strip() for word in part.split("=")) for part in text.split(","))


whole = _reader(lambda text: int(_text(re.fullmatch(r"\d+", text))), "not a whole number")
count = _reader(lambda text: int(_text(re.fullmatch(r"0*[1-9]\d*", text))), "not a whole number above 0")
share = _reader(
    lambda text: _within(0, float(text.rstrip("% ")) / (100 if text.strip().endswith("%") else 1), 1),
    "not a share from 0 to 1; write it like 5% or 0.05",
)
clock_time = _reader(
    lambda text: dt.datetime.strptime(text.strip(), "%H:%M").time(), "not a time of day; write it like 06:00"
)
day = _reader(dt.date.fromisoformat, "not a day; write it like 2026-01-31")
_windows = _reader(
    lambda text: _text(re.fullmatch(r"([^\s,=']+=)?\d{1,6}(,([^\s,=']+=)?\d{1,6})*", _without_blanks(text))),
    "hours are needed, like 120, or by channel, like email=120,visit=24",
)
_numbers = _reader(
    lambda text: tuple(whole(part.strip()) for part in text.split(",") if part.strip()), "not a whole number"
)
_rate = _reader(lambda text: _within(1e-9, float(text), math.inf), "a number above 0 is needed")
_zone = _reader(lambda text: str(ZoneInfo(text)), "a time zone name is needed, like Europe/Berlin")
_personal_data = _reader(lambda text: PersonalData(text.lower()), f"{', '.join(PersonalData)} are the ways")
_switch = _reader(lambda text: {"on": True, "off": False}[text.lower()], "on or off is needed")
_log_level = _reader(
    lambda text: _text(re.fullmatch("DEBUG|INFO|WARNING|ERROR|CRITICAL", text.upper())),
    "DEBUG, INFO, WARNING, ERROR or CRITICAL is needed",
)
_log_format = _reader(lambda text: _text(re.fullmatch("text|json", text.lower())), "text or json is needed")
_owner = _reader(
    lambda text: _text(re.fullmatch(r"team:[\w-]+|[\w.+-]+@[\w-]+(\.[\w-]+)+", text)),
    "an e-mail address or a team is needed, like team:marketing-data",
)
_memory = _reader(
    lambda text: _text(re.fullmatch(r"[1-9]\d*(\.\d+)? ?[MG]i?B", text)),
    "an amount of memory is needed, like 2GB or 800MB",
)
_storage_url = _reader(
    lambda text: _text(re.fullmatch(r"[^\s:]+|(file|s3|gs|gcs|abfss?|az)://\S+", text)),
    "a folder is needed, or an address like s3://BUCKET/FOLDER",
)
_mail_tls = _reader(
    lambda text: _text(re.fullmatch("starttls|tls|off", text.lower())), "starttls, tls or off is needed"
)
_mail_on = _reader(
    lambda text: _text(re.fullmatch("|".join(("nightly", *WEEKDAYS)), text.lower())),
    "nightly or a weekday is needed",
)
_mailboxes = _reader(
    lambda text: tuple(
        _text(re.fullmatch(r"[^\s@<>,;]+@[^\s@<>,;]+", part.strip())) for part in text.split(",")
    ),
    "mail addresses are needed, like ann@example.com, separated by commas",
)
_mailbox = _reader(
    lambda text: "".join(_mailboxes(text)) if "," not in text else _text(None), "a mail address is needed"
)
_kept = _reader(Kept.of, f"days are needed, or ever, of what to change of {Kept()}")
_tags = _reader(
    lambda text: json.dumps(dict(json.loads(text))), 'a JSON object is needed, like {"team": "marketing"}'
)


def _personal_key(value: str) -> Secret:
    if len(value) < LEAST_KEY:  # not shown, as below: it may be a key, or hold a password
        raise SettingsError(
            f"MARKETING_PERSONAL_KEY is too short to be a key: {LEAST_KEY} characters are the least"
        )
    return Secret(value)


def _redis_url(value: str) -> Secret:
    if not re.fullmatch(r"(rediss?|unix)://\S+", value):
        raise SettingsError(
            "MARKETING_BUDGET_URL: the address of a Redis server is needed, like redis://HOST:6379/0"
        )
    return Secret(value)


def _size(value: str) -> int:
    """Bytes: `2GB`, `800 MB`, `1.5GiB`."""
    number, unit = re.split(r" ?(?=[MG]i?B)", _memory(value))
    return int(float(number) * {"MB": 1e6, "GB": 1e9, "MiB": 2**20, "GiB": 2**30}[unit])


def setting(read: Callable[[str], Any], default: Any, doc: str, variable: str = "") -> Any:
    """A field with its reader and one-line description; its environment variable is called as it is, unless
    `variable` is given."""
    return field(default=default, metadata={"read": read, "doc": doc, "variable": variable})


@dataclass(frozen=True)
class Settings:
    """Everything a person can set. `accounts` is empty when nothing is configured: then the sandbox stands
    in."""

    home: Path
    accounts: tuple[Connection, ...] = ()
    folder: Path = Path()  # where `.env`, accounts.toml and activations.toml are looked for
    shards: tuple[str, ...] = ()  # those of accounts.toml while none is picked; there are no accounts then
    unknown: tuple[str, ...] = ()  # MARKETING_ variables that are no settings, each with the nearest one
    history_start: dt.date = setting(day, dt.date(2015, 1, 1), "first day that the first sync reads")
    lookback_days: int = setting(whole, 7, "days that every night reads again")
    calendar_days_ahead: int = setting(whole, 90, "days ahead for which scheduled posts are read")
    goal_domains: tuple[int, ...] = setting(
        _numbers, (), "ids of tracked domains, comma-separated, beside those that webhooks name"
    )
    timezone: str = setting(_zone, "UTC", "time zone of an account that does not report its own")
    max_rate: float | None = setting(
        _rate, None, "most requests a second per account, below the service's rate limit"
    )
    max_age_days: int = setting(count, 7, "maximum age in days: no contact's timeline and coupons get older")
    max_requests: int | None = setting(count, None, "most requests of one run, over all accounts")
    until: dt.time | None = setting(
        clock_time, None, "end of a run's requests, like 06:00, in the schedule's zone"
    )
    shrink_limit: float = setting(
        share, 0.5, "shrink check: a listing that lost more than this share of its rows is refused"
    )
    resume_hours: int = setting(whole, 12, "an unfinished sync resumes from responses not older than this")
    lock_seconds: int = setting(whole, 120, "how long to wait for a warehouse that another program has open")
    attribution_hours: str = setting(
        _windows, "120", "hours in which a touch counts for an outcome; by channel: email=120,visit=24"
    )
    kept: Kept = setting(
        _kept,
        Kept(),
        "days for which a home keeps what; name what to change, like bodies=ever,logs=30",
        "MARKETING_KEEP",
    )
    models_memory: str = setting(_memory, "2GB", "most memory that building the models takes")
    models_seconds: int = setting(count, 600, "how long a model of your own may take before it is ended")
    models: Path | None = setting(
        Path, None, "folder with models of your own; `models` in the home by default"
    )
    schedule_cron: str = setting(str, "0 2 * * *", "when the nightly sync runs")
    schedule_timezone: str = setting(_zone, "UTC", "time zone of the schedule")
    personal_data: PersonalData = setting(
        _personal_data, PersonalData.KEEP, "personal data in what is published: keep, hash or drop"
    )
    personal_key: Secret | None = setting(
        _personal_key, None, "key of the hashes; without one, `personal.key` of the home is made and used"
    )
    personal_group_min: int = setting(
        count, GROUP_MIN, "unless it is kept: groups of fewer people, such as mail domains, are one row"
    )
    alert_url: str = setting(
        str, "", "webhook address that is told of failed runs, pushes that need a person, and unusual days"
    )
    owner: str = setting(
        _owner, "team:marketing-data", "whom the UI names as owner of all assets: an e-mail address or a team"
    )
    mail_host: str = setting(str, "", "mail server (SMTP) that new reports are mailed by")
    mail_port: int | None = setting(
        count, None, "its port; by default 587, with TLS from the start 465, without 25"
    )
    mail_tls: str = setting(
        _mail_tls, "starttls", "how it is spoken to: starttls, tls (from the start) or off"
    )
    mail_user: str = setting(str, "", "who logs in there")
    mail_password: Secret | None = setting(
        Secret, None, "their password; or `MARKETING_MAIL_PASSWORD_FILE`, a file that holds it"
    )
    mail_from: str = setting(_mailbox, "", "address that reports come from")
    mail_to: tuple[str, ...] = setting(_mailboxes, (), "addresses that they go to, comma-separated")
    mail_on: str = setting(
        _mail_on, "nightly", "nightly, or a weekday: the first new report from that day on"
    )
    activations: bool = setting(
        _switch, False, "on: every nightly sync pushes the segments of activations.toml"
    )
    shard: str = setting(
        str, "", "the shard of accounts.toml to work on; its home is a folder of that name in the home"
    )
    run_tags: str = setting(
        _tags,
        "",
        "tags of the scheduled runs as JSON, for their launcher; {shard} in them is the shard's name",
    )
    network_home: bool = setting(
        _switch, False, "on: the home may be on a network file system that only this machine uses"
    )
    budget_url: Secret | None = setting(
        _redis_url, None, "Redis that shares the rate limit among machines, like redis://HOST:6379/0"
    )
    lake_url: str = setting(
        _storage_url, "", "folder or object storage that published tables are exported to"
    )
    backup_url: str = setting(_storage_url, "", "folder or object storage that every run is backed up to")
    body_limit: int = setting(_size, BODY_LIMIT, "largest response, unpacked; larger ones are rejected")
    input_limit: int = setting(_size, INPUT_LIMIT, "largest file of a push, unpacked, or result of its query")
    query_seconds: int = setting(
        count, QUERY_SECONDS, "how long the query of a push or an activation may run"
    )
    log_level: str = setting(
        _log_level,
        "WARNING",
        "what the commands log to standard error, from DEBUG to CRITICAL",
        "MARKETING_LOG",
    )
    log_format: str = setting(_log_format, "text", "how they log it: text, or json with an object a line")
    sandbox_url: str = setting(str, "", "a sandbox that runs already, instead of the embedded one")
    sandbox_contacts: int = setting(whole, 600, "contacts of the embedded sandbox")

    @property
    def is_sandbox(self) -> bool:
        """True when no account is configured, so that the embedded sandbox stands in."""
        return not self.accounts and not self.shards

    def of_run(self, tags: Mapping[str, str]) -> "Settings":
        """Those of the shard that a run's tags name; these, where there is nothing to choose. Raises
        SettingsError."""
        wanted = tags.get(SHARD_TAG, "")
        if not self.shards:
            if wanted not in ("", self.shard):
                raise SettingsError(
                    f"the run is for shard {wanted}, and this process works on {self.shard or 'none'} "
                    "(MARKETING_SHARD)"
                )
            return self
        if wanted not in self.shards:
            raise SettingsError(
                f"the run needs a tag {SHARD_TAG} with one of the shards of accounts.toml: "
                f"{', '.join(self.shards)}"
            )
        return load_settings(self.folder, shard=wanted)

    def of_one_shard(self) -> "Settings":
        """These, where they are of one home. Raises SettingsError where a shard has to be picked."""
        if self.shards:
            raise SettingsError(
                f"accounts.toml declares shards: set MARKETING_SHARD to one of {', '.join(self.shards)}"
            )
        return self

    @property
    def own_models(self) -> Path:
        return self.folder / self.models.expanduser() if self.models else self.home / "models"

    @property
    def warehouse_path(self) -> Path:
        return self.home / "warehouse.duckdb"


#: Environment variable → the field.
_VARIABLES = {
    each.metadata["variable"] or f"MARKETING_{each.name.upper()}": each
    for each in fields(Settings)
    if each.metadata
}


def documented() -> list[tuple[str, str, str]]:
    """(variable, default, description) of every optional setting, for the README."""
    return [(variable, _shown(each.default), each.metadata["doc"]) for variable, each in _VARIABLES.items()]


def _shown(value: Any) -> str:
    if isinstance(value, tuple):
        return ",".join(map(str, value))
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, int) and value >= 10**6:
        return f"{value // 10**6}MB" if value % 10**9 else f"{value // 10**9}GB"
    return "" if value is None else str(value)


#: What other machines may have mounted, too; `fuseblk` is a disk.
_NETWORK = re.compile(r"nfs4?|cifs|smb3?|smbfs|9p|afs|ceph|lustre|beegfs|gpfs|glusterfs|fuse(\..*)?")
_MOUNTS = Path("/proc/self/mountinfo")


def network_file_system(folder: Path, mounts: Path = _MOUNTS) -> str:
    """Its type if the folder (which need not be there) is on one; empty on a disk, and where the system does
    not tell."""
    found = ("/", "")
    lines = mounts.read_text(encoding="utf-8", errors="replace").splitlines() if mounts.exists() else []
    for line in lines:  # proc(5): ID, parent, device, root, mount point … - type
        left, _, right = line.partition(" - ")
        point = re.sub(r"\\(\d{3})", lambda code: chr(int(code[1], 8)), left.split()[4])
        if folder.resolve().is_relative_to(point) and len(point) >= len(
            found[0]
        ):  # the last one mounted at a place is what is seen there
            found = (point, right.split()[0])
    return found[1] if _NETWORK.fullmatch(found[1]) else ""


def load_settings(
    folder: Path, environment: Mapping[str, str] | None = None, mounts: Path = _MOUNTS, *, shard: str = ""
) -> Settings:
    """From `folder`/.env, `folder`/accounts.toml and the environment, which goes first; of the shard if
    named. Raises SettingsError."""
    values = _dotenv(folder / ".env") | dict(os.environ if environment is None else environment)
    if shard:
        values["MARKETING_SHARD"] = shard
    if password := _key("MARKETING_MAIL_PASSWORD", values):
        values["MARKETING_MAIL_PASSWORD"] = password
    given = {
        each.name: _read(name, each.metadata["read"], values[name])
        for name, each in _VARIABLES.items()
        if values.get(name)
    }
    declared = _declared(folder / "accounts.toml")
    tables, shards = _of_shard(declared, given.get("shard", ""))
    unknown = _unknown(values, declared)
    for_all = {"body_limit": given.get("body_limit", BODY_LIMIT), "budget_url": given.get("budget_url")}
    found = () if shards else _accounts(tables, values, given.get("max_rate"))
    accounts = tuple(replace(account, **for_all) for account in found)
    _check_keys((each.account, each.url, each.key.reveal()) for each in accounts)
    home = (
        folder
        / Path(
            values.get("MARKETING_HOME") or ("data/live" if accounts or shards else "data/sandbox")
        ).expanduser()
    )
    home = (home / given.get("shard", "")).resolve()
    # names that are no text in UTF-8 (or read as none, under a locale without it) cannot be opened by every
    # part of this
    try:
        str(home).encode()
    except UnicodeEncodeError:
        raise SettingsError(
            "the home's name is no text in UTF-8: set LC_ALL=C.UTF-8, or MARKETING_HOME to another folder"
        ) from None
    if re.search(
        "[?]|%[0-9A-Fa-f]{2}", str(home)
    ):  # DuckDB puts its log elsewhere; Dagster's addresses of files are decoded
        raise SettingsError(
            f"the home {home} has a ? or a % with two digits in its name: set MARKETING_HOME to a folder "
            "without them"
        )
    settings = Settings(home=home, accounts=accounts, folder=folder, shards=shards, unknown=unknown, **given)
    _check_mail(settings)
    _check_apart(settings)
    if (
        settings.shard
        and settings.lake_url
        and settings.personal_data is PersonalData.HASH
        and not settings.personal_key
    ):
        raise SettingsError(
            "MARKETING_PERSONAL_KEY is missing: hashes of all shards in a lake need the same key"
        )
    if not settings.network_home and (kind := network_file_system(home, mounts)):
        raise SettingsError(
            f"the home {home} is on a network file system ({kind}), where two machines would not see each "
            "other's locks and could damage "
            "the warehouse: set MARKETING_HOME to a folder on a disk of this machine, and copy what is "
            "published from there; or set "
            "MARKETING_NETWORK_HOME=on if no other machine ever uses this home"
        )
    return settings


#: Variables that are no fields; MARKETING_CODE_HOST is of `deploy/workspace.yaml`.
_OTHERS = (
    "MARKETING_HOME",
    "MARKETING_API_URL",
    "MARKETING_CODE_HOST",
    *(f"MARKETING_{name}{end}" for name in ("API_KEY", "MAIL_PASSWORD") for end in ("", "_FILE")),
)


def _unknown(values: Mapping[str, str], tables: Mapping[str, Mapping[str, Any]]) -> tuple[str, ...]:
    """What is set for nothing, with what was most likely meant."""
    of_accounts = [f"{table.get('key_env')}{end}" for table in tables.values() for end in ("", "_FILE")]
    known = {*_VARIABLES, *_OTHERS, *of_accounts}
    wrong = sorted(name for name in values if name.startswith("MARKETING_") and name not in known)
    own = {
        name.removeprefix("MARKETING_"): name for name in known
    }  # with what all have in common, all would be near
    near = [
        [
            f" (did you mean {own[found]}?)"
            for found in get_close_matches(name.removeprefix("MARKETING_"), own, 1)
        ]
        for name in wrong
    ]
    return tuple(
        f"{name} is no setting{''.join(meant)}: it does nothing"
        for name, meant in zip(wrong, near, strict=True)
    )


def _check_keys(keys: Iterable[tuple[str, str, str]]) -> None:
    """One key is one account: under two names everything of it would be there twice. `keys`: account,
    address, key or where it is."""
    names: dict[tuple[str, str], str] = {}
    for name, url, key in keys:
        host = url.partition("://")[2].partition("/")[0].lower()
        if (other := names.setdefault((host, key), name)) != name:
            raise SettingsError(
                f"accounts.toml: {other} and {name} have the same key; a key is one account: keep one "
                "of the names"
            )


def _check_apart(settings: Settings) -> None:
    """What is kept elsewhere is swept, and made anew of the home: neither may be in the other."""
    homes = [settings.home / shard for shard in settings.shards] or [settings.home]
    for variable, url in {
        "MARKETING_BACKUP_URL": settings.backup_url,
        "MARKETING_LAKE_URL": settings.lake_url,
    }.items():
        if not url or not (url.startswith("file://") or "://" not in url):
            continue
        place = Path(url.removeprefix("file://")).expanduser().resolve()
        for home in map(Path.resolve, homes):
            if place.is_relative_to(home) or home.is_relative_to(place):
                raise SettingsError(
                    f"{variable}: {place} and the home {home} are one in the other; set a folder "
                    "beside the home"
                )


def _check_mail(settings: Settings) -> None:
    needed = {"HOST": settings.mail_host, "FROM": settings.mail_from, "TO": settings.mail_to}
    missing = [f"MARKETING_MAIL_{name}" for name, value in needed.items() if not value]
    if 0 < len(missing) < len(needed):
        raise SettingsError(
            f"{' and '.join(missing)}: not set, and the other settings of mail need it; set all of "
            "them or none"
        )
    if bool(settings.mail_user) != bool(settings.mail_password):
        raise SettingsError(
            "MARKETING_MAIL_USER and MARKETING_MAIL_PASSWORD belong together: set both or neither"
        )
    if (
        settings.mail_password
        and settings.mail_tls == "off"
        and settings.mail_host not in ("localhost", "127.0.0.1", "::1")
    ):
        raise SettingsError(
            "MARKETING_MAIL_TLS=off would send the password readable for everybody: use starttls or tls"
        )


def _read(variable: str, read: Callable[[str], Any], text: str) -> Any:
    try:
        return read(text.strip())
    except ValueError as problem:
        raise SettingsError(f"{variable}={text!r} cannot be used: {problem}") from None


def _dotenv(path: Path) -> dict[str, str]:
    if not path.exists():
        return {}
    values: dict[str, str] = {}
    try:
        with path.open(encoding="utf-8-sig") as stream:
            for binding in parse_stream(stream):
                if binding.error or (binding.key and binding.value is None):
                    raise SettingsError(
                        f"{path.name}, line {binding.original.line}: not NAME=value; correct or "
                        "remove the line"
                    )
                if binding.key:
                    values[binding.key] = binding.value or ""
    except (OSError, UnicodeDecodeError) as problem:
        raise _unreadable(path, problem) from None
    return values


def _unreadable(path: Path, problem: Exception) -> SettingsError:
    if isinstance(problem, UnicodeDecodeError):
        return SettingsError(f"{path.name} is not text in UTF-8: save it as that")
    why = problem.strerror if isinstance(problem, OSError) else problem
    return SettingsError(f"{path.name} cannot be read: {why}; correct or remove it")


def _declared(path: Path) -> dict[str, dict[str, Any]]:
    """The tables of `accounts.toml`, of all shards."""
    tables = declared_tables(path, "accounts", _ACCOUNT, needed=("url",)) if path.exists() else {}
    for name, table in tables.items():
        is_sharded = any("shard" in each for each in tables.values())
        if is_sharded and (
            not re.fullmatch(r"[A-Za-z0-9_-]{1,63}", table.get("shard", "")) or table["shard"] in _TAKEN
        ):
            rule = (
                f"a name of letters, digits, - and _ but none of {', '.join(_TAKEN)}, for all "
                "accounts or for none"
            )
            raise SettingsError(f"{path.name}, [accounts.{name}]: shard is {rule}")
    where = {name: table.get("key_env") or table.get("key_file") for name, table in tables.items()}
    _check_keys((name, tables[name]["url"], place) for name, place in where.items() if place)
    return tables


def _of_shard(
    tables: dict[str, dict[str, Any]], shard: str
) -> tuple[dict[str, dict[str, Any]], tuple[str, ...]]:
    """The tables of the shard if one is picked; and the shards from which one has yet to be picked."""
    shards = tuple(dict.fromkeys(table["shard"] for table in tables.values() if "shard" in table))
    if shard and shard not in shards:
        raise SettingsError(
            f"MARKETING_SHARD={shard!r}: no account of accounts.toml has this shard; there are "
            f"{', '.join(shards) or 'none'}"
        )
    if shard:
        return {name: table for name, table in tables.items() if table["shard"] == shard}, ()
    return tables, shards


def _accounts(
    tables: Mapping[str, Mapping[str, Any]], values: Mapping[str, str], max_rate: float | None
) -> tuple[Connection, ...]:
    """The accounts of `accounts.toml` when there is one, else the one from the environment."""
    if tables:
        return tuple(
            _account(f"accounts.toml, [accounts.{name}]", name, table, values, max_rate)
            for name, table in tables.items()
        )
    key, url = _key("MARKETING_API_KEY", values), values.get("MARKETING_API_URL", "").strip()
    if not key and not url:
        return ()
    if not key:
        raise SettingsError(
            "MARKETING_API_URL is set but MARKETING_API_KEY is not; set both, or neither to use the sandbox"
        )
    if not url:
        raise SettingsError(
            "MARKETING_API_KEY is set but MARKETING_API_URL is not; set the service's address up to and "
            "including /1"
        )
    return (Connection("main", address("MARKETING_API_URL", url), Secret(key), max_rate),)


def _key(variable: str, values: Mapping[str, str]) -> str:
    """The key that the variable holds, or the file that the same with `_FILE` names, as stores of secrets
    mount it; empty: neither."""
    key, file = values.get(variable, "").strip(), values.get(f"{variable}_FILE", "").strip()
    if key and file:
        raise SettingsError(f"both {variable} and {variable}_FILE are set; keep one of them")
    return _key_in(f"{variable}_FILE", file) if file else key


def _key_in(what: str, file: str) -> str:
    try:
        found = Path(file).expanduser().read_text(encoding="utf-8-sig").strip()
    except (OSError, UnicodeDecodeError) as problem:
        why = problem.strerror if isinstance(problem, OSError) else "it is not text"
        raise SettingsError(f"{what}: {file} cannot be read: {why}") from None
    if not found or len(found.split()) > 1:
        raise SettingsError(
            f"{what}: {file} holds {'more than one word' if found else 'nothing'}; the key alone "
            "belongs there"
        )
    return found


#: What tables of a file take: a type of TOML, and what it is for whoever writes it.
TEXT, NUMBER, SWITCH = (str, "a text in quotation marks"), ((int, float), "a number"), (bool, "true or false")
_ACCOUNT = {
    "url": TEXT,
    "key_env": TEXT,
    "key_file": TEXT,
    "max_rate": NUMBER,
    "timezone": TEXT,
    "shard": TEXT,
}


def declared_tables(
    path: Path, group: str, takes: Mapping[str, tuple[Any, str]], needed: Sequence[str]
) -> dict[str, dict[str, Any]]:
    """The tables [group.NAME] of a TOML file, by name and in its order, with the keys that they take. Raises
    SettingsError."""
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as problem:
        raise _unreadable(path, problem) from None
    tables, one = content.pop(group, None), group.removesuffix("s")
    if content:
        raise SettingsError(f"{path.name}: {next(iter(content))} is not known; it has tables [{group}.NAME]")
    if (
        not isinstance(tables, dict)
        or not tables
        or not all(isinstance(table, dict) for table in tables.values())
    ):
        raise SettingsError(f"{path.name} names no {one}; write [{group}.NAME] with {' and '.join(needed)}")
    for name, table in tables.items():
        where = f"{path.name}, [{group}.{name}]"
        if not re.fullmatch(r"[A-Za-z0-9_-]{1,64}", name):
            raise SettingsError(f"{where}: the name of an {one} has letters, digits, - and _ only")
        for key, value in table.items():
            if key not in takes:
                raise SettingsError(f"{where}: {key} is not known; it takes {', '.join(takes)}")
            kind, words = takes[key]
            if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
                raise SettingsError(f"{where}: {key} is {words}")
        for key in needed:
            if not str(table.get(key, "")).strip():
                raise SettingsError(f"{where}: {key} is missing")
    return tables


def _account(
    where: str, name: str, table: Mapping[str, Any], values: Mapping[str, str], max_rate: float | None
) -> Connection:
    rates = [rate for rate in (table.get("max_rate"), max_rate) if rate]
    zone = _read(f"{where}: timezone", _zone, table["timezone"]) if "timezone" in table else None
    key = Secret(_account_key(where, table, values))
    return Connection(name, address(f"{where}: url", table["url"]), key, min(rates, default=None), zone)


def _account_key(where: str, table: Mapping[str, Any], values: Mapping[str, str]) -> str:
    if ("key_env" in table) == ("key_file" in table):
        raise SettingsError(
            f"{where}: either key_env (an environment variable) or key_file (a file) says where its key is"
        )
    if "key_file" in table:
        return _key_in(f"{where}: key_file", table["key_file"])
    if not re.fullmatch(r"[A-Z_][A-Z0-9_]*", table["key_env"]):  # not shown: it may be the key itself
        raise SettingsError(
            f"{where}: key_env is the name of an environment variable in capitals, like HARBOR_KEY; the key "
            "stands there"
        )
    if not (secret := _key(table["key_env"], values)):
        raise SettingsError(
            f"{where}: the environment variable {table['key_env']} (key_env) is not set, nor is "
            f"{table['key_env']}_FILE"
        )
    return secret


def address(name: str, url: str) -> str:
    """The service's, as it is used. The message does not show what was written: it may be the key in the
    wrong place."""
    if not re.fullmatch(r"https?://[^\s?#@]+", url):
        raise SettingsError(
            f"{name} is not an address; it looks like https://HOST/1, without a key or password in it"
        )
    return url.rstrip("/")
