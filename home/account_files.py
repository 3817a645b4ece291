"""Accounts of `accounts.toml`, or the account of the environment, with their keys; and tables of
TOML files that people write. Not here: all other settings (`settings`)."""

import inspect
import re
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

from dotenv.parser import parse_stream

from home.values import SettingsError, join_choices, rate, read_value, zone
from marketing_api.errors import AuthenticationFailed
from marketing_api.exchange import Connection
from marketing_api.redaction import Secret
from marketing_api.service_address import normalize_address

#: The TOML types of a key, and their name in messages.
_Kind = tuple[Any, str]
_TEXT: _Kind = (str, "a text in quotation marks")
#: Type of a field → what its key takes; all others take a text.
_KINDS: Mapping[Any, _Kind] = {
    float | None: ((int, float), "a number"),
    bool: (bool, "true or false"),
}
#: Settings for all accounts.
_FOR_ALL = ("max_rate", "body_limit", "budget_url")
#: Folders of a home; the homes of shards are next to them, so no shard may have such a name.
_RESERVED_SHARDS = ("dagster", "logs", "tmp")

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class DeclaredAccount:
    """An account of `accounts.toml`; its key is in `key_env` or `key_file`."""

    name: str
    url: str
    key_env: str | None = None
    key_file: str | None = None
    max_rate: float | None = None
    timezone: str | None = None
    shard: str | None = None


def make_unreadable_error(path: Path, error: Exception) -> SettingsError:
    if isinstance(error, UnicodeDecodeError):
        return SettingsError(f"{path.name} is not text in UTF-8: save it as UTF-8")
    why = error.strerror if isinstance(error, OSError) else error
    return SettingsError(f"{path.name} cannot be read: {why}; correct or remove it")


def read_dotenv(path: Path) -> dict[str, str]:
    """Empty without the file. Raises SettingsError."""
    values: dict[str, str] = {}
    try:
        with path.open(encoding="utf-8-sig") as stream:
            for binding in parse_stream(stream):
                if binding.error or (binding.key and binding.value is None):
                    where = f"{path.name}, line {binding.original.line}"
                    raise SettingsError(f"{where}: not NAME=value; correct or remove the line")
                if binding.key:
                    values[binding.key] = binding.value or ""
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError) as error:
        raise make_unreadable_error(path, error) from None
    return values


def declared_tables(
    path: Path, group: str, entry_class: Callable[..., T], needed: Sequence[str]
) -> dict[str, T]:
    """The tables [group.NAME] of a TOML file, by name and in their order. Their keys are the fields
    of the dataclass `entry_class`, after its first, which is the name. Raises SettingsError."""
    _, *entry_fields = inspect.get_annotations(entry_class).items()
    takes = {key: _KINDS.get(annotation, _TEXT) for key, annotation in entry_fields}
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise make_unreadable_error(path, error) from None
    tables: Any = content.pop(group, None)
    one = group.removesuffix("s")
    if content:
        raise SettingsError(
            f"{path.name}: {next(iter(content))} is not a known table; write [{group}.NAME]"
        )
    if not tables or not isinstance(tables, dict):
        raise SettingsError(
            f"{path.name} has no {one}; write [{group}.NAME] with {' and '.join(needed)}"
        )
    for name, table in tables.items():
        where = f"{path.name}, [{group}.{name}]"
        if not re.fullmatch(r"[A-Za-z0-9_-]{1,64}", name):
            raise SettingsError(
                f"{where}: the name of an {one} can only have letters, digits, - and _"
            )
        if not isinstance(table, dict):
            raise SettingsError(f"{where}: write it as a table with {' and '.join(needed)}")
        _check_table(where, table, takes, needed)
    return {name: entry_class(name, **table) for name, table in tables.items()}


def _check_table(
    where: str, table: Mapping[str, object], takes: Mapping[str, _Kind], needed: Sequence[str]
) -> None:
    for key, value in table.items():
        if key not in takes:
            raise SettingsError(f"{where}: {key} is not a known key; use {', '.join(takes)}")
        kind, words = takes[key]
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            raise SettingsError(f"{where}: {key} is {words}")
    for key in needed:
        if not str(table.get(key, "")).strip():
            raise SettingsError(f"{where}: {key} is missing")


def declared_accounts(path: Path) -> list[DeclaredAccount]:
    """The accounts of `accounts.toml`, of all shards; none without the file. Raises
    SettingsError."""
    if not path.exists():
        return []
    accounts: list[DeclaredAccount] = []
    tables = declared_tables(path, "accounts", DeclaredAccount, needed=("url",))
    for name, account in tables.items():
        url = read_address(f"{path.name}, [accounts.{name}]: url", account.url)
        accounts.append(replace(account, url=url))
    if any(account.shard is not None for account in accounts):
        _check_shards(path, accounts)
    places = [(account, account.key_env or account.key_file) for account in accounts]
    check_keys((account.name, account.url, place) for account, place in places if place)
    return accounts


def _check_shards(path: Path, accounts: Sequence[DeclaredAccount]) -> None:
    for account in accounts:
        shard = account.shard or ""
        if not re.fullmatch(r"[A-Za-z0-9_-]{1,63}", shard) or shard in _RESERVED_SHARDS:
            raise SettingsError(
                f"{path.name}, [accounts.{account.name}]: shard needs letters, digits, - and _, "
                f"and can't be {join_choices(_RESERVED_SHARDS)}; set it for all accounts or none"
            )


def check_keys(keys: Iterable[tuple[str, str, str]]) -> None:
    """One key is one account: with two names, all its data would be there twice. `keys`: account,
    address, key or where it is."""
    names: dict[tuple[str, str], str] = {}
    for name, url, key in keys:
        other = names.setdefault((urlsplit(url).netloc, key), name)
        if other != name:
            raise SettingsError(
                f"accounts.toml: {other} and {name} have the same key, so they are one account: "
                "remove one of them"
            )


def connections_of(
    declared: Sequence[DeclaredAccount],
    shard: str,
    texts: Mapping[str, str],
    common_values: Mapping[str, Any],
    *,
    reads_keys: bool,
) -> tuple[Connection, ...]:
    """The accounts of `accounts.toml` that belong to the shard, or without that file the account of
    the environment. `common_values`: settings; the lower `max_rate` counts. Without `reads_keys`
    keys stay empty. Raises SettingsError, also if no key can be read."""
    for_all = {name: common_values[name] for name in _FOR_ALL if name in common_values}
    if not declared:
        return _from_environment(texts, reads_keys, for_all)
    found = [
        _declared_connection(account, texts, for_all, reads_keys)
        for account in declared
        if (account.shard or "") == shard
    ]
    if found and all(connection.key_error for connection in found):
        raise SettingsError(str(found[0].key_error))
    check_keys(
        (connection.account, connection.url, connection.key.reveal())
        for connection in found
        if connection.key
    )
    return tuple(found)


def _declared_connection(
    account: DeclaredAccount,
    texts: Mapping[str, str],
    for_all: Mapping[str, Any],
    reads_keys: bool,
) -> Connection:
    where = f"accounts.toml, [accounts.{account.name}]"
    timezone = account.timezone
    max_rate = account.max_rate
    if max_rate is not None:
        read_value(f"{where}: max_rate", rate, str(max_rate))
    rates = filter(None, [max_rate, for_all.get("max_rate")])
    own: dict[str, Any] = {
        "max_rate": min(rates, default=None),
        "timezone": timezone and read_value(f"{where}: timezone", zone, timezone),
    }
    key = ""
    try:
        if reads_keys:
            key = _key_of(where, account, texts)
    except SettingsError as error:
        own["key_error"] = AuthenticationFailed(str(error))
    return Connection(account.name, account.url, Secret(key), **{**for_all, **own})


def _from_environment(
    values: Mapping[str, str], reads_keys: bool, for_all: Mapping[str, Any]
) -> tuple[Connection, ...]:
    url = values.get("MARKETING_API_URL", "").strip()
    has_key = any(
        values.get(name, "").strip() for name in ("MARKETING_API_KEY", "MARKETING_API_KEY_FILE")
    )
    if not has_key and not url:
        return ()
    if not has_key and reads_keys:
        raise SettingsError(
            "MARKETING_API_URL is set but MARKETING_API_KEY is not; set both, or neither to use "
            "the sandbox"
        )
    if not url:
        raise SettingsError(
            "MARKETING_API_KEY is set but MARKETING_API_URL is not; set the service's address up "
            "to and including /1"
        )
    key = key_in(values, "MARKETING_API_KEY") if reads_keys else ""
    return (Connection("main", read_address("MARKETING_API_URL", url), Secret(key), **for_all),)


def _key_of(where: str, account: DeclaredAccount, values: Mapping[str, str]) -> str:
    variable = account.key_env
    if (variable is None) == (account.key_file is None):
        raise SettingsError(
            f"{where}: set either key_env (an environment variable with the key) or key_file (a "
            "file with the key)"
        )
    if variable is None:
        return _key_of_file(f"{where}: key_file", account.key_file or "")
    if not re.fullmatch(r"[A-Z_][A-Z0-9_]*", variable):  # not displayed: it may be the key itself
        raise SettingsError(
            f"{where}: key_env has to be the name of the environment variable with the key, in "
            "capitals like HARBOR_KEY"
        )
    key = values.get(variable, "").strip()
    if not key:
        raise SettingsError(f"{where}: the environment variable {variable} (key_env) is not set")
    return key


def key_in(values: Mapping[str, str], variable: str) -> str:
    """The key in the variable, or in the file that the variable with `_FILE` names, as secret
    stores mount it; empty without both. Raises SettingsError."""
    key, file = (values.get(name, "").strip() for name in (variable, f"{variable}_FILE"))
    if key and file:
        raise SettingsError(f"both {variable} and {variable}_FILE are set; keep one of them")
    return _key_of_file(f"{variable}_FILE", file) if file else key


def _key_of_file(what: str, file: str) -> str:
    """Messages don't display the file's name, since somebody may have written the key there."""
    try:
        found = Path(file).expanduser().read_text(encoding="utf-8-sig").split()
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not text"
        raise SettingsError(f"{what}: the file cannot be read: {why}") from None
    if len(found) != 1:
        holds = "more than one word" if found else "nothing"
        raise SettingsError(f"{what}: the file contains {holds}; write only the key into it")
    return found[0]


def read_address(name: str, url: str) -> str:
    """The address in its normal form. Raises SettingsError, which names the place of a wrong
    one."""
    try:
        return normalize_address(url)
    except ValueError as error:
        raise SettingsError(f"{name}: {error}") from None
