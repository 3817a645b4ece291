"""What becomes of personal data in a copy that others read: kept, hashed with a key, or dropped.

Belongs here: the three ways, their SQL, and the key. Not here: which columns are personal (`personal`), who copies (`publish`).
"""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
from pathlib import Path

import duckdb

from marketing_api.discretion import MASK
from marketing_api.secret import Secret
from warehouse.archive.disk import create, make_folder, sync_folder
from warehouse.errors import WarehouseError
from warehouse.personal_data import LEAST_KEY, PersonalData
from warehouse.sql import literal, quoted, rows

#: Hexadecimal digits of a hash that are kept: 128 bits, so that two people never share one.
_DIGITS = 32
#: An e-mail address within another text, also as it stands in a link; nothing around it is taken with it.
_ADDRESS = r"[^\s\"'<>()\[\]{}=&?,;:|/\\]+(@|%40)[^\s\"'<>()\[\]{}=&?,;:|/\\]+"


class Masking:
    """The SQL that turns a column into what may be shown. `key` is needed to hash, and for nothing else."""

    def __init__(self, personal_data: PersonalData, key: Secret | None = None) -> None:
        if personal_data is PersonalData.HASH and not key:
            raise ValueError("hashing needs a key")
        self.personal_data = personal_data
        self._key = key

    def prepare(self, connection: duckdb.DuckDBPyConnection) -> None:
        """Give the connection what the expressions need. The key is a variable: it must not stand in the text of a statement."""
        if self._key:
            inner, outer = _pads(self._key)
            rows(connection, "set variable mask_inner = $1::blob", [inner])
            rows(connection, "set variable mask_outer = $1::blob", [outer])

    def expression(self, name: str, sql_type: str, *, is_personal: bool) -> str:
        """The column as it is shown. Under `hash` and `drop`, addresses within other texts become `•••`."""
        column = quoted(name)
        if self.personal_data is PersonalData.KEEP:
            return column
        if not is_personal:
            return _without_addresses(column, sql_type)
        if self.personal_data is PersonalData.HASH and sql_type == "VARCHAR":
            return f"{_hashed(column)} as {column}"
        return f"null::{sql_type} as {column}"


def hashed(text: str, key: Secret) -> str:
    """What a personal text becomes under `hash`: HMAC-SHA-256 of it, trimmed and in lower case, 32 hexadecimal digits."""
    return hmac.new(key.reveal().encode(), text.strip(" ").lower().encode(), hashlib.sha256).hexdigest()[:_DIGITS]


def personal_key(home: Path, given: Secret | None = None) -> Secret:
    """The key: the one given by a setting, else the home's, which is made when there is none.

    WarehouseError when it is too short to be one.
    """
    if given:
        return _checked(given, "MARKETING_PERSONAL_KEY")
    path = home / "personal.key"
    if not path.exists():
        _write_key(path)
    return _checked(Secret(path.read_text(encoding="utf-8").strip()), str(path))


def _write_key(path: Path) -> None:
    """Whole or not at all, and only once: another process may be doing the same."""
    make_folder(path.parent)
    temporary = path.with_name(f".{path.name}-{secrets.token_hex(4)}")
    descriptor = create(temporary)
    try:
        os.write(descriptor, f"{secrets.token_hex(32)}\n".encode())
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    try:
        path.hardlink_to(temporary)
    except FileExistsError:
        pass
    finally:
        temporary.unlink()
    sync_folder(path.parent)


def _checked(key: Secret, where: str) -> Secret:
    if len(key.reveal()) < LEAST_KEY:
        raise WarehouseError(f"{where} does not hold a key of at least {LEAST_KEY} characters: put the old one back, or a new one")
    return key


def _pads(key: Secret) -> tuple[bytes, bytes]:
    """RFC 2104: the key, padded to a block, with the inner and the outer constant."""
    raw = key.reveal().encode()
    block = (hashlib.sha256(raw).digest() if len(raw) > 64 else raw).ljust(64, b"\0")
    return bytes(byte ^ 0x36 for byte in block), bytes(byte ^ 0x5C for byte in block)


def _hashed(column: str) -> str:
    """An empty text tells nothing and stays."""
    inner = f"sha256(getvariable('mask_inner') || encode(lower(trim({column}))))"
    outer = f"left(sha256(getvariable('mask_outer') || unhex({inner})), {_DIGITS})"
    return f"case when {column} = '' then '' when {column} is not null then {outer} end"


def _without_addresses(column: str, sql_type: str) -> str:
    if sql_type not in ("VARCHAR", "JSON", "VARCHAR[]"):
        return column
    text = f"{column}::varchar"
    masked = f"regexp_replace({text}, {literal(_ADDRESS)}, {literal(MASK)}, 'g')"
    if sql_type == "VARCHAR[]":
        masked = f"list_transform({column}, lambda item: regexp_replace(item, {literal(_ADDRESS)}, {literal(MASK)}, 'g'))"
    return f"case when contains({text}, '@') or contains({text}, '%40') then ({masked})::{sql_type} else {column} end as {column}"
