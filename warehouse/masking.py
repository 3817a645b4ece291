"""What a column becomes in a copy that others read: whether it is there at all, whether it is personal, and
what is shown of it then.

Nothing hangs on what a column is called. `source` and `sync` tables declare it (`Column.is_personal`,
`is_internal`). For models it follows from their SQL (`lineage`): a column that is made of a personal one is
personal. Nobody has to mark anything, and a column that nobody knows is published and personal."""

import hashlib
import hmac
import json
import re
import secrets
from collections.abc import Collection, Mapping, Sequence
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import duckdb

from marketing_api.address import MASK, normal_form
from marketing_api.redaction import Secret
from warehouse.dbt_project import models
from warehouse.disk import exclusive, make_folder, write_file
from warehouse.errors import WarehouseError
from warehouse.policies import GROUP_MIN, LEAST_KEY, PersonalData
from warehouse.schema import SCHEMAS, UNDECLARED, columns_of
from warehouse.sql import NORMAL_FORM, add_normal_form, qualified, query, quoted, rows
from warehouse.tables import ALL_TABLES, SYNC_TABLES, TABLES

#: Written by `python -m docs.models`.
LINEAGE = Path(__file__).with_name("lineage.json")


def personal_of(relation: str, columns: Collection[str]) -> Collection[str]:
    """Those of its columns that are personal."""
    schema, table = relation.split(".", 1)
    return [column for column in columns if column != "account" and is_personal(schema, table, column)]


def is_personal(schema: str, table: str, column: str) -> bool:
    """Whether the column names, reaches or quotes a person."""
    if schema == UNDECLARED and column in ("account", *TABLES[table].key):
        schema = "source"
    if schema in ("source", "sync"):
        return _DECLARED.get((f"{schema}.{table}", column), True)
    return bool(lineage()["columns"].get(f"{schema}.{table}", {}).get(column, True))


@cache
def lineage() -> Mapping[str, Any]:
    """`columns`: table → column → the personal columns it is made of. `made_of`: table → column → all columns
    that it comes from."""
    found: Mapping[str, Any] = json.loads(LINEAGE.read_text(encoding="utf-8"))
    return found


_DECLARED = {
    (table.qualified, column.name): column.is_personal for table in ALL_TABLES for column in table.columns
}


class PublishedColumn(NamedTuple):
    sql_type: str
    is_personal: bool


#: Where archive files stand, and the loading's own notes.
INTERNAL_TABLES = {table.qualified for table in SYNC_TABLES if table.is_internal} | {"sync.meta"}


@cache
def internal_columns() -> Collection[tuple[str, str]]:
    """(relation, column) of what only the loading needs."""
    return {
        (table.qualified, column.name)
        for table in ALL_TABLES
        for column in table.columns
        if column.is_internal
    }


def published_columns(connection: duckdb.DuckDBPyConnection) -> dict[str, dict[str, PublishedColumn]]:
    """Relation → column of what is published of a warehouse: all of `source`, `history`, `marts` and `sync`
    that is not internal."""
    found: dict[str, dict[str, PublishedColumn]] = {}
    for relation, columns in columns_of(connection).items():
        schema, table = relation.split(".", 1)
        if schema in SCHEMAS and relation not in INTERNAL_TABLES:
            found[relation] = {
                name: PublishedColumn(sql_type, is_personal(schema, table, name))
                for name, sql_type in columns.items()
                if (relation, name) not in internal_columns()
            }
    return found


#: Hexadecimal digits of a hash that are kept: 128 bits, so that two people never share one; 64 for links.
_DIGITS, _LINK_DIGITS = 32, 16
#: Texts that are kept as they are shown: links repeat.
_CACHED = 10_000
#: What an e-mail address may be a whole one of, also as it stands in a link; nothing around it is taken with
#: it.
_WORD = re.compile(r"[^\s\"'<>()\[\]{}=&?,;:|/\\]+")
_ADDRESS = re.compile(r".(@|%40|%2540).", re.DOTALL)

#: Parameters of links that say something about a campaign or a page and never about a person; `utm_` with
#: anything behind it.
HARMLESS = (
    "utm_[a-z_]+",
    "lang",
    "locale",
    "hl",
    "currency",
    "category",
    "page",
    "sort",
    "view",
    "tab",
    "format",
)
#: Letters, digits and blanks: not what another address could stand in, escaped or not.
_HARMLESS = re.compile(rf"({'|'.join(HARMLESS)})=(?:[\w.,~+-]++|%20|%[89a-f][0-9a-f])*+", re.IGNORECASE)
_SCHEME = r"(?:[a-z][a-z0-9+.-]*:)?//"
#: Where a link may stand in a text: from a quote before it to the next one, as it may have blanks in it; else
#: up to a blank.
_PART = re.compile(
    rf"\"{_SCHEME}(?:[^\"\\]|\\.)*|'{_SCHEME}(?:[^'\"\\]|\\.)*|(?:[^\s\"'<>\\]|(?<!\\)\\+[/u])+",
    re.IGNORECASE | re.DOTALL,
)
_BEGINS_LINK = re.compile(rf"{_SCHEME}|www\.|/", re.IGNORECASE)
_USER = re.compile(r"//[^/]*@")
#: Types that hold no text. What others hold, such as structs, is not looked into and counts as personal.
_PLAIN_TYPE = re.compile(
    r"(BOOLEAN|U?(TINY|SMALL|BIG|HUGE)?INT(EGER)?|DOUBLE|FLOAT|DECIMAL\(.*\)|DATE|TIME.*|INTERVAL|UUID)(\[\d*\])*"
)


class Masking:
    """The SQL that turns a column into what may be shown. `key` is needed to hash, and for nothing else.

    `group_min`: a group with a name that tells of its people is not shown by itself when it has fewer of
    them."""

    def __init__(
        self, personal_data: PersonalData, key: Secret | None = None, group_min: int = GROUP_MIN
    ) -> None:
        if personal_data is PersonalData.HASH and not key:
            raise ValueError("hashing needs a key")
        self.personal_data = personal_data
        self.group_min = group_min
        self._key = key

    @property
    def fingerprint(self) -> str:
        """The same where the same is shown of the same; empty where links are kept apart anew each time."""
        if self.personal_data is PersonalData.KEEP:
            return str(self.personal_data)
        return f"{self.personal_data}/{self.group_min}/{hashed('', self._key)}" if self._key else ""

    def prepare(self, connection: duckdb.DuckDBPyConnection) -> None:
        """Give the connection what the expressions need. The key is a variable: it must not stand in the text
        of a statement.

        Without one, links are kept apart by a key that nobody ever has: it goes with the connection.
        """
        key = self._key or Secret(secrets.token_hex(32))
        raw = key.reveal().encode()
        block = (hashlib.sha256(raw).digest() if len(raw) > 64 else raw).ljust(64, b"\0")
        for pad, constant in (("inner", 0x36), ("outer", 0x5C)):  # RFC 2104
            rows(
                connection, f"set variable mask_{pad} = $1::blob", [bytes(byte ^ constant for byte in block)]
            )
        add_normal_form(connection)
        connection.create_function(
            "mask_text", lru_cache(_CACHED)(lambda text: shown_text(text, key)), ["VARCHAR"], "VARCHAR"
        )

    def select(self, catalog: str, relation: str, columns: Mapping[str, PublishedColumn]) -> str:
        """The rows that are shown of a relation in the catalog."""
        shown = ", ".join(
            self.expression(name, column.sql_type, is_personal=column.is_personal)
            for name, column in columns.items()
        )
        groups = models()[relation].meta.get("small_groups") if relation in models() else None
        types = {name: column.sql_type for name, column in columns.items()}
        return f"select {shown} from {self.relation(f'{catalog}.{qualified(relation)}', types, groups)}"

    def expression(self, name: str, sql_type: str, *, is_personal: bool) -> str:
        """The column as it is shown. Under `hash` and `drop`, other texts lose addresses, and links what may
        tell of a person."""
        column = quoted(name)
        if self.personal_data is PersonalData.KEEP or (not is_personal and _PLAIN_TYPE.fullmatch(sql_type)):
            return column
        if not is_personal and sql_type in _SHOWN:
            return f"{_SHOWN[sql_type].format(column)} as {column}"
        if self.personal_data is PersonalData.HASH and sql_type == "VARCHAR":
            # one hash for all spellings of an address (RFC 2104); an empty text tells nothing and stays
            inner = f"sha256(getvariable('mask_inner') || encode({NORMAL_FORM.format(column)}))"
            outer = f"left(sha256(getvariable('mask_outer') || unhex({inner})), {_DIGITS})"
            return f"case when {column} = '' then '' when {column} is not null then {outer} end as {column}"
        return f"null::{sql_type} as {column}"

    def relation(self, source: str, columns: Mapping[str, str], groups: Mapping[str, Any] | None) -> str:
        """SQL of the rows that are shown of a table whose `groups` tell of people (`{by, people, shares,
        within}`); others as they are.

        Groups of fewer than `group_min` people are one row, `(other)` or NULL; when that has fewer itself,
        the next smallest joins it. `within`: columns that are part of the key, too: groups are joined among
        those that have the same values of these. `sum`, `min`, `max`: the columns that are folded so; shares
        follow from them, and of what does not follow from the rows (a median) nothing is shown."""
        if groups is None or self.personal_data is PersonalData.KEEP:
            return source
        by, people, shares = quoted(groups["by"]), quoted(groups["people"]), groups.get("shares", {})
        other = "'(other)'" if columns[groups["by"]] == "VARCHAR" else "null"
        folds = {name: fold for fold in _FOLDS for name in groups.get(fold, ())}
        apart = ", ".join(quoted(name) for name in ("account", *groups.get("within", ())))
        shown = [
            quoted(name)
            if name in groups.get("within", ())
            else _of_groups(name, sql_type, by, other, shares.get(name), folds.get(name))
            for name, sql_type in columns.items()
        ]
        terms = {
            "by": by,
            "people": people,
            "apart": apart,
            "source": source,
            "group_min": self.group_min,
            "shown": ", ".join(shown),
        }
        return f"({query('folded').format(**terms)})"


#: How a model may say that its columns are folded.
_FOLDS = ("sum", "min", "max")


def _of_groups(
    name: str, sql_type: str, by: str, other: str, share: Sequence[str] | None, fold: str | None
) -> str:
    column = quoted(name)
    if column == by:
        return f"case when is_small then {other} else any_value({by}) end as {by}"
    if name == "account":
        return name
    if fold:
        return f"{fold}({column})::{sql_type} as {column}"
    follows = "null"
    if share:
        part, whole = (f"sum({quoted(one)})" for one in share)
        follows = f"case when {part} between 0 and {whole} then {part}::double / nullif({whole}, 0) end"
    return f"case when is_small then {follows} else any_value({column}) end as {column}"


def hashed(text: str, key: Secret) -> str:
    """What a personal text is in a copy that hashes, as `Masking.expression` works it out."""
    return hmac.new(key.reveal().encode(), normal_form(text).encode(), hashlib.sha256).hexdigest()[:_DIGITS]


_MAY_TELL = "regexp_matches({}, '[@?#%]')"
#: `mask_text` is `shown_text`; most texts have nothing that it could find.
_SHOWN = {
    "VARCHAR": f"case when {_MAY_TELL.format('{0}')} then mask_text({{0}}) else {{0}} end",
    "VARCHAR[]": f"list_transform({{0}}, lambda item: case when {_MAY_TELL.format('item')} then "
    "mask_text(item) else item end)",
    "JSON": f"case when {_MAY_TELL.format('{0}::varchar')} then try_cast(mask_text({{0}}::varchar) as json) "
    f"else {{0}} end",
}


def shown_text(text: str, key: Secret) -> str:
    """A text that is not personal, without addresses, and its links without what may tell of a person.

    A text that begins with a link is one, to its end: some have blanks in their queries.
    """
    first = next(iter(text.split(None, 1)), "")
    if _BEGINS_LINK.match(first) or _has_query(first):
        return _link(text, key)

    def shown(part: re.Match[str]) -> str:
        word = part[0]
        is_link = "//" in word or "www." in word.lower() or _has_query(word) or "=" in word.partition("?")[2]
        return _link(word, key) if is_link else word

    return _without_addresses(_PART.sub(shown, text))


def _has_query(word: str) -> bool:
    place, *rest = re.split("[?#]", word, maxsplit=1)
    return "/" in place and any(rest)


def _link(text: str, key: Secret) -> str:
    """It keeps its page and harmless parameters. One that lost something ends with a hash of the whole, so
    that two links stay two, and one stays one wherever it stands. Names of parameters go with their values: a
    value may stand without one."""
    before, _, _ = text.partition("#")
    place, _, query = before.partition("?")
    place = _without_addresses(_USER.sub("//", place))
    kept = [part for part in re.split("[&;]", query) if _HARMLESS.fullmatch(part)]
    if place + ("?" + "&".join(kept) if kept else "") == text:
        return text
    mark = hmac.new(key.reveal().encode(), text.encode(), hashlib.sha256).hexdigest()[:_LINK_DIGITS]
    return place + "?" + "&".join([*kept, MASK + mark])


def _without_addresses(text: str) -> str:
    return _WORD.sub(lambda word: MASK if _ADDRESS.search(word[0]) else word[0], text)


def personal_key(home: Path, given: Secret | None = None) -> Secret:
    """The key: the one given by a setting, else the home's, which is made when there is none.

    WarehouseError when it is too short to be one.
    """
    if given:
        return _checked(given, "MARKETING_PERSONAL_KEY")
    path = make_folder(home) / "personal.key"
    with exclusive(home):  # made once, whole or not at all
        for left in home.glob(f".{path.name}-*"):  # of a process that was killed while it made the key
            left.unlink()
        if not path.exists():
            write_file(path, f"{secrets.token_hex(32)}\n".encode())
    return _checked(Secret(path.read_text(encoding="utf-8", errors="replace").strip()), str(path))


def _checked(key: Secret, where: str) -> Secret:
    text = key.reveal()
    if len(text) < LEAST_KEY or not text.isprintable() or "\ufffd" in text:
        raise WarehouseError(
            f"{where} holds no key of at least {LEAST_KEY} printable characters: put the old one back, "
            "or a new one"
        )
    return key
