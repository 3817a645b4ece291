"""Accounts of `accounts.toml`, or the account of the environment, with their keys; and tables of
TOML files that people write. Not here: all other settings (`settings`)."""

import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from dotenv.parser import parse_stream

from home.values import SettingsError, read_value, zone
from marketing_api.exchange import Connection
from marketing_api.redaction import Secret
from marketing_api.service_address import normalize_address

#: Keys of a file's tables: the TOML type, and its name in messages.
TEXT = (str, "a text in quotation marks")
NUMBER = ((int, float), "a number")
SWITCH = (bool, "true or false")
_ACCOUNT = {
    "url": TEXT,
    "key_env": TEXT,
    "key_file": TEXT,
    "max_rate": NUMBER,
    "timezone": TEXT,
    "shard": TEXT,
}
#: Settings for all accounts.
_FOR_ALL = ("max_rate", "body_limit", "budget_url")
#: Folders of a home; the homes of shards are next to them, so no shard may have such a name.
_RESERVED_SHARDS = ("dagster", "logs", "tmp")

Table = Mapping[str, Any]


def make_unreadable_error(path: Path, error: Exception) -> SettingsError:
    if isinstance(error, UnicodeDecodeError):
        return SettingsError(f"{path.name} is not text in UTF-8: save it as that")
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
    path: Path, group: str, takes: Mapping[str, tuple[Any, str]], needed: Sequence[str]
) -> dict[str, dict[str, Any]]:
    """The tables [group.NAME] of a TOML file, by name and in their order, with their keys. Raises
    SettingsError."""
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise make_unreadable_error(path, error) from None
    tables: Any = content.pop(group, None)
    one = group.removesuffix("s")
    if content:
        raise SettingsError(
            f"{path.name}: {next(iter(content))} is not known; it has tables [{group}.NAME]"
        )
    if not tables or not isinstance(tables, dict):
        raise SettingsError(
            f"{path.name} names no {one}; write [{group}.NAME] with {' and '.join(needed)}"
        )
    for name, table in tables.items():
        where = f"{path.name}, [{group}.{name}]"
        if not re.fullmatch(r"[A-Za-z0-9_-]{1,64}", name):
            raise SettingsError(f"{where}: the name of an {one} has letters, digits, - and _ only")
        if not isinstance(table, dict):
            raise SettingsError(f"{where}: write it as a table with {' and '.join(needed)}")
        _check_table(where, table, takes, needed)
    return dict(tables)


def _check_table(
    where: str, table: Table, takes: Mapping[str, tuple[Any, str]], needed: Sequence[str]
) -> None:
    for key, value in table.items():
        if key not in takes:
            raise SettingsError(f"{where}: {key} is not known; it takes {', '.join(takes)}")
        kind, words = takes[key]
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            raise SettingsError(f"{where}: {key} is {words}")
    for key in needed:
        if not str(table.get(key, "")).strip():
            raise SettingsError(f"{where}: {key} is missing")


def declared_accounts(path: Path) -> dict[str, dict[str, Any]]:
    """The tables of `accounts.toml`, of all shards; none without the file. Raises SettingsError."""
    if not path.exists():
        return {}
    tables = declared_tables(path, "accounts", _ACCOUNT, needed=("url",))
    for name, table in tables.items():
        table["url"] = read_address(f"{path.name}, [accounts.{name}]: url", table["url"])
    is_sharded = any("shard" in table for table in tables.values())
    for name, table in tables.items() if is_sharded else ():
        shard = table.get("shard", "")
        if not re.fullmatch(r"[A-Za-z0-9_-]{1,63}", shard) or shard in _RESERVED_SHARDS:
            raise SettingsError(
                f"{path.name}, [accounts.{name}]: shard is a name of letters, digits, - and _ but "
                f"none of {', '.join(_RESERVED_SHARDS)}, for all accounts or for none"
            )
    where = {name: table.get("key_env") or table.get("key_file") for name, table in tables.items()}
    check_keys((name, tables[name]["url"], place) for name, place in where.items() if place)
    return tables


def check_keys(keys: Iterable[tuple[str, str, str]]) -> None:
    """One key is one account: with two names, all its data would be there twice. `keys`: account,
    address, key or where it is."""
    names: dict[tuple[str, str], str] = {}
    for name, url, key in keys:
        other = names.setdefault((urlsplit(url).netloc, key), name)
        if other != name:
            raise SettingsError(
                f"accounts.toml: {other} and {name} have the same key; a key is one account: keep "
                "one of the names"
            )


def connections_of(
    declared: Mapping[str, Table],
    shard: str,
    texts: Mapping[str, str],
    common_values: Mapping[str, Any],
    *,
    reads_keys: bool,
) -> tuple[Connection, ...]:
    """The accounts of `accounts.toml` that belong to the shard, or without that file the account of
    the environment. `common_values`: settings; the lower `max_rate` counts. Without `reads_keys`
    keys stay empty. Raises SettingsError."""
    for_all = {name: common_values[name] for name in _FOR_ALL if name in common_values}
    if not declared:
        return _from_environment(texts, reads_keys, for_all)
    tables = {name: table for name, table in declared.items() if table.get("shard", "") == shard}
    found = [
        _declared_connection(name, table, texts, for_all, reads_keys)
        for name, table in tables.items()
    ]
    check_keys(
        (connection.account, connection.url, connection.key.reveal())
        for connection in found
        if connection.key
    )
    return tuple(found)


def _declared_connection(
    name: str, table: Table, texts: Mapping[str, str], for_all: Mapping[str, Any], reads_keys: bool
) -> Connection:
    where = f"accounts.toml, [accounts.{name}]"
    timezone = table.get("timezone")
    rates = filter(None, [table.get("max_rate"), for_all.get("max_rate")])
    own = {
        "max_rate": min(rates, default=None),
        "timezone": timezone and read_value(f"{where}: timezone", zone, timezone),
    }
    key = _key_of(where, table, texts) if reads_keys else ""
    return Connection(name, table["url"], Secret(key), **{**for_all, **own})


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


def _key_of(where: str, table: Table, values: Mapping[str, str]) -> str:
    if ("key_env" in table) == ("key_file" in table):
        raise SettingsError(
            f"{where}: either key_env (an environment variable) or key_file (a file) says where "
            "its key is"
        )
    if "key_file" in table:
        return _key_of_file(f"{where}: key_file", table["key_file"])
    variable = table["key_env"]
    if not re.fullmatch(r"[A-Z_][A-Z0-9_]*", variable):  # not displayed: it may be the key itself
        raise SettingsError(
            f"{where}: key_env is the name of an environment variable in capitals, like "
            "HARBOR_KEY, that contains the key"
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
    try:
        found = Path(file).expanduser().read_text(encoding="utf-8-sig").split()
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not text"
        raise SettingsError(f"{what}: {file} cannot be read: {why}") from None
    if len(found) != 1:
        holds = "more than one word" if found else "nothing"
        raise SettingsError(f"{what}: {file} contains {holds}; write only the key into it")
    return found[0]


def read_address(name: str, url: str) -> str:
    """The address in its normal form. Raises SettingsError, which names the place of a wrong
    one."""
    try:
        return normalize_address(url)
    except ValueError as error:
        raise SettingsError(f"{name}: {error}") from None
