"""Takes people who asked to be forgotten out of a DuckDB file: the warehouse, a published copy, one that was set aside.

Rows about them stay, as totals hang on them, with pseudonyms and without what is personal; texts of other rows lose their addresses. The
file is then written anew, since DuckDB keeps the bytes of what was changed in blocks that it does not use. Not here: who they are
(`person`), what becomes of a text (`forgetting`), other kinds of files (`erased_files`).
"""

import json
import mmap
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cache, cached_property, reduce
from html import escape
from pathlib import Path
from typing import Any
from urllib.parse import quote, quote_plus

import duckdb
import msgspec
import pyarrow as pa
import pyarrow.compute as pc
from duckdb.func import FunctionNullHandling

from marketing_api.operation import Operation
from marketing_api.operations import ALL
from marketing_api.redaction import Secret
from warehouse.forgetting import DOMAIN, LINK, Forgotten, details
from warehouse.masking import hashed, is_personal
from warehouse.own_models import own_columns
from warehouse.person import MAY_NAME, Person, about_of, tables_of
from warehouse.rebuild import make_views
from warehouse.schema import comments
from warehouse.sql import literal, quoted, rows, transaction, value
from warehouse.tables import TABLES

_ID = re.compile(r"(contact(?:[ _-]?id)?[\"']?(?: |\s*[=:]\s*[\"']?))(\d{1,18})\b", re.IGNORECASE)
_ID_BYTES = re.compile(_ID.pattern.encode(), re.IGNORECASE)
_NUMBER = re.compile(r"(?<![\w.-])\d{1,18}(?![\w.])")
#: Words of one pattern; rows of a column that are searched at once.
_AT_ONCE, ROWS_AT_ONCE = 300, 50_000
#: Bytes from which on a word is taken out wherever it stands; a shorter one may be part of another.
_LONG = 8
_PART_BEFORE, _PART_BEHIND = re.compile(rb"(?<![\\])(?<!%[0-9a-fA-F])[\w\x80-\xff]\Z"), re.compile(rb"[\w\x80-\xff]")


@dataclass(frozen=True)
class Erasing:
    """Who is being forgotten, by name, for as long as that takes. `aliases`: other spellings of addresses, as a published copy has them,
    with those of the pseudonyms. `tokens`: values that nobody else has."""

    person: Person
    forgotten: Forgotten
    tokens: tuple[str, ...] = field(default=(), repr=False)
    aliases: Mapping[str, str] = field(default_factory=dict, repr=False)

    @cached_property
    def likely(self) -> re.Pattern[str]:
        return re.compile(self.person.likely(with_ids=True))

    @cached_property
    def patterns(self) -> Sequence[str]:
        """Patterns (RE2) of all that `found` finds, and of a little more."""
        ids = [self.person.likely(with_ids=True)] if self.person.contacts else []
        return patterns_of([*ids, *(re.escape(word) for word in sorted(self._words))])

    @cached_property
    def _words(self) -> Collection[str]:
        """Every spelling of their addresses and tokens."""
        return {word for text in (*self.person.addresses, *self.tokens) for word in _spellings(text)}

    @cached_property
    def _everywhere(self) -> re.Pattern[bytes]:
        words = [word.encode("utf-8", "replace") for word in self._words]
        return re.compile(_any_of(words) if words else rb"[^\s\S]", re.IGNORECASE)

    def found(self, data: bytes | mmap.mmap) -> Iterator[tuple[int, int]]:
        """Where their addresses, tokens and contacts stand in bytes of whatever kind: (begin, end)."""
        for each in self._everywhere.finditer(data):
            if each.end() - each.start() >= _LONG or _stands_alone(data, each.start(), each.end()):
                yield each.span()
        ids = {number for _, number in self.person.contacts}
        for each in _ID_BYTES.finditer(data) if ids else ():
            if int(each[2]) in ids:
                yield each.span(2)

    def anywhere(self, text: str) -> str:
        """A text that no column declares, without whatever is theirs."""
        data = bytearray(self.text(text).encode("utf-8", "surrogatepass"))
        for begin, end in sorted(self.found(bytes(data)), reverse=True):
            data[begin:end] = b"*" * (end - begin)
        return data.decode("utf-8", "surrogatepass")

    @cached_property
    def _contacts(self) -> Collection[tuple[str, int]]:
        return set(self.person.contacts)

    def in_hashes(self, key: Secret) -> "Erasing":
        """The same for a copy that hashes personal data with this key."""
        aliases = {hashed(address, key): hashed(self.forgotten.address(address), key) for address in self.person.addresses}
        return replace(self, person=Person((*self.person.addresses, *aliases), self.person.contacts), aliases=aliases)

    def contact(self, account: str | None, number: int) -> int:
        """The pseudonym of a contact of theirs; of others the same. Without an account that of any."""
        account = account or next((name for name, each in self.person.contacts if each == number), "")
        return self.forgotten.contact(account, number) if (account, number) in self._contacts else number

    def text(self, text: str, account: str | None = None) -> str:
        """With pseudonyms in place of their addresses and contacts."""
        if not self.likely.search(text):
            return text
        return _ID.sub(lambda found: f"{found[1]}{self._number(account, found[2])}", self.forgotten.text(text))

    def _number(self, account: str | None, digits: str) -> str:
        """With the pseudonym in its place where that is a contact of theirs; others as they are written."""
        pseudonym = self.contact(account, int(digits))
        return digits if pseudonym == int(digits) else str(pseudonym)

    def personal(self, text: str) -> str | None:
        """What becomes of a personal text of theirs: the pseudonym of an address, nothing of others, unless it was sent to many."""
        address = text.strip().lower()
        if address in self.person.addresses:
            return self.aliases.get(address) or self.forgotten.address(address)
        return text if address.endswith(f"@{DOMAIN}") or address in self.forgotten.titles else None

    def kept(self, text: str, account: str | None = None) -> str:
        """What becomes of a text of theirs that is not personal: of a link the page stays, a key has the contact's pseudonym."""
        link = LINK.match(text)
        text = self.text("".join(link.groups()) if link else text, account)
        return _NUMBER.sub(lambda found: self._number(account, found[0]), text) if self.person.contacts else text

    def params(self, account: str, operation: str, params: str) -> str:
        """A call of theirs, as JSON."""
        return json.dumps(self.forgotten.params(account, operation, json.loads(params), is_about=True), ensure_ascii=False)

    def details(self, text: str) -> str | None:
        """Those of a timeline's entry; without any a load has none."""
        kept = details(json.loads(text), self.forgotten)
        return _compact(kept) if kept else None

    def rejected(self, account: str, table: str, raw: str) -> str | None:
        """An entry that was set aside; nothing is left of one that is theirs and does not say so."""
        before = json.loads(raw)
        after = self.forgotten.entry(account, _operation_of(table), before)
        return None if after == before else _compact(after)


def _compact(value: Any) -> str:
    """As JSON stands in tables."""
    return msgspec.json.encode(value).decode()


def _spellings(text: str) -> set[str]:
    """As it stands in texts, JSON, links and pages."""
    plain = {text, json.dumps(text)[1:-1], json.dumps(text, ensure_ascii=False)[1:-1], quote(text, safe=""), quote_plus(text), escape(text)}
    return plain | {each.replace("@", at) for each in plain for at in ("%40", "%2540", "\\u0040", "&#64;")}


def _any_of(words: Collection[bytes]) -> bytes:
    """A pattern of all of them, as a tree: an alternation of thousands would be tried one by one at each byte."""
    tails: dict[bytes, set[bytes]] = {}
    for word in words:
        if word:
            tails.setdefault(word[:1].lower(), set()).add(word[1:].lower())
    parts = [re.escape(first) + _any_of(rest) for first, rest in sorted(tails.items())]
    return b"(?:%b)%b" % (b"|".join(parts), b"?" if b"" in words else b"") if parts else b""


def patterns_of(parts: Sequence[str]) -> Sequence[str]:
    """Patterns (RE2) that what fits one of the parts fits, whatever its case; a single one of thousands would be too large."""
    return [f"(?i)(?:{'|'.join(parts[first : first + _AT_ONCE])})" for first in range(0, len(parts), _AT_ONCE)]


def fitting(texts: pa.Array, patterns: Sequence[str]) -> list[bytes]:
    """Of a column those texts, each once, that fit one of the patterns: Arrow reads many times faster than Python, which then decides."""
    texts = texts.unique().cast(pa.binary()).drop_null()
    masks = [pc.match_substring_regex(texts, pattern) for pattern in patterns]
    return list(texts.filter(reduce(pc.or_, masks)).to_pylist()) if masks else []


def _stands_alone(data: bytes | mmap.mmap, begin: int, end: int) -> bool:
    """Whether a short word is no part of a longer one."""
    before, behind = data[max(0, begin - 3) : begin], data[end : end + 1]
    return not _PART_BEFORE.search(before) and not _PART_BEHIND.match(behind)


@cache
def _operation_of(table: str) -> Operation:
    return next(operation for operation in ALL.values() if TABLES[table].record in operation.records)


def forget_in_database(connection: duckdb.DuckDBPyConnection, erasing: Erasing, target: Path | None) -> dict[str, int]:
    """Rows of each table of the current database that have something of theirs. `target`: where that database is written without it, with
    its comments and views, in the storage version that it has."""
    with _functions(connection, erasing):
        plans = [_plan(connection, erasing, *table) for table in tables_of(connection)]
        counts = {plan.table: int(value(connection, f"select count(*) from {plan.source} where is_about or is_named")) for plan in plans}
        if target is not None:
            _write(connection, target, {plan.table: plan.rewritten for plan in plans if counts[plan.table]})
    return {table: count for table, count in counts.items() if count}


#: A date says nothing of whom it is about.
_DATE = re.compile(r"\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}(?!\d)")
#: Characters that a value has at least which is looked for wherever it may stand; digits alone may be anything.
_LEAST, _LEAST_DIGITS = 4, 6


def titles_of(connection: duckdb.DuckDBPyConnection) -> Collection[str]:
    """What was sent to many, in lower case."""
    return {title for (title,) in rows(connection, "select distinct lower(trim(subject)) from source.campaigns where subject is not null")}


#: What others are made of.
_ORIGINAL = ("source", "history", "sync")


def tokens_of(connection: duckdb.DuckDBPyConnection, erasing: Erasing) -> tuple[str, ...]:
    """Personal values of theirs, also within JSON, that no row of anybody else has."""
    found: set[str] = set()
    texts = []
    with _functions(connection, erasing):
        for schema, name, columns in tables_of(connection):
            if schema not in _ORIGINAL:
                continue
            plan, own = _plan(connection, erasing, schema, name, columns), own_columns(connection)
            for column, kind in columns.items():
                if kind in _TEXTS:
                    texts.append((plan.source, f"{quoted(column)}::varchar"))
                if kind in ("VARCHAR", "JSON") and is_personal(schema, name, column, own):
                    kind = "JSON" if (plan.table, column) in _PARTS else kind
                    after = _about(plan.table, column, kind, "account" if "account" in columns else "null", is_personal=True)
                    for before, kept in rows(connection, f"select {quoted(column)}, {after} from {plan.source} where is_about"):
                        found |= _leaves(before, kind) - _leaves(kept, kind)
        return tuple(sorted(_of_nobody_else(connection, {text for text in found if _is_distinctive(text, erasing)}, texts)))


def _is_distinctive(text: str, erasing: Erasing) -> bool:
    if text in {str(number) for _, number in erasing.person.contacts} or _DATE.match(text):
        return False
    return len(text) >= (_LEAST_DIGITS if text.isdecimal() else _LEAST) and text.strip().lower() not in erasing.person.addresses


def _of_nobody_else(connection: duckdb.DuckDBPyConnection, tokens: set[str], texts: Collection[tuple[str, str]]) -> set[str]:
    """Those that stand in no row of others, not even as a part of a text. `texts`: rows, and a text of theirs."""
    spelled = {
        token: {text.lower() for text in (token, json.dumps(token)[1:-1], json.dumps(token, ensure_ascii=False)[1:-1])} for token in tokens
    }
    for source, text in texts:
        if not spelled:
            break
        for batch in connection.sql(f"select {text} from {source} where not is_about").to_arrow_reader(ROWS_AT_ONCE):
            likely = patterns_of([re.escape(text) for token in sorted(spelled) for text in sorted(spelled[token])])
            for found in (each.decode().lower() for each in fitting(batch.column(0), likely)):
                spelled = {token: spellings for token, spellings in spelled.items() if not any(each in found for each in spellings)}
    return set(spelled)


def _leaves(text: str | None, kind: str) -> set[str]:
    if text is None or kind != "JSON":
        return {text} if text else set()
    waiting, found = [json.loads(text)], set()
    while waiting:
        each = waiting.pop()
        if isinstance(each, dict | list):
            waiting += each.values() if isinstance(each, dict) else each
        elif each is not None and not isinstance(each, bool):
            found.add(str(each))
    return found


@contextmanager
def _functions(connection: duckdb.DuckDBPyConnection, erasing: Erasing) -> Iterator[None]:
    """What expressions of this module call, for rows that need it only."""
    made: tuple[tuple[str, Callable[..., Any], list[Any], str], ...] = (
        ("forget_contact", erasing.contact, ["VARCHAR", "BIGINT"], "BIGINT"),
        ("forget_text", lambda account, text: erasing.text(text, account), ["VARCHAR", "VARCHAR"], "VARCHAR"),
        ("forget_kept", lambda account, text: erasing.kept(text, account), ["VARCHAR", "VARCHAR"], "VARCHAR"),
        ("forget_personal", erasing.personal, ["VARCHAR"], "VARCHAR"),
        ("forget_params", erasing.params, ["VARCHAR", "VARCHAR", "VARCHAR"], "VARCHAR"),
        ("forget_details", erasing.details, ["VARCHAR"], "VARCHAR"),
        ("forget_rejected", erasing.rejected, ["VARCHAR", "VARCHAR", "VARCHAR"], "VARCHAR"),
        ("forget_drift", lambda text: json.dumps({name: [None, None] for name in json.loads(text)}), ["VARCHAR"], "VARCHAR"),
    )
    for name, work, takes, gives in made:
        connection.create_function(name, _unless_null(work, len(takes)), takes, gives, null_handling=FunctionNullHandling.SPECIAL)
    try:
        yield
    finally:
        for name, *_ in made:
            connection.remove_function(name)


def _unless_null(work: Callable[..., Any], count: int) -> Callable[..., Any]:
    """DuckDB counts parameters by their names. An account may be unknown, and nothing becomes of nothing."""
    if count == 1:
        return lambda one: None if one is None else work(one)
    if count == 2:
        return lambda one, two: None if two is None else work(one, two)
    return lambda one, two, three: None if three is None else work(one, two, three)


@dataclass(frozen=True)
class _Plan:
    """`source`: SQL of the table's rows with `is_about` and `is_named`; `rewritten`: of the columns as they become."""

    table: str
    source: str
    rewritten: str


#: Columns of rows about them of which a part stays, or all: the link of a campaign was sent to many.
_PARTS = {
    ("sync.requests", "params"): "forget_params(account, operation, params)",
    ("sync.writebacks", "params"): "forget_params(account, operation, params)",
    ("sync.writebacks", "drift"): "forget_drift(drift)",
    ("sync.rejected_records", "raw"): "forget_rejected(account, table_name, raw)",
    ("source.timeline_events", "details"): "forget_details(details)",
    ("source.timeline_automations", "details"): "forget_details(details)",
    ("source.campaign_clickers", "url"): "forget_text(account, url)",
}
_TEXTS = ("VARCHAR", "JSON", "VARCHAR[]")


def _plan(connection: duckdb.DuckDBPyConnection, erasing: Erasing, schema: str, name: str, columns: Mapping[str, str]) -> _Plan:
    table, own = f"{schema}.{name}", own_columns(connection)
    personal = {column for column in columns if is_personal(schema, name, column, own)}
    account = "account" if "account" in columns else "null"
    about = about_of(erasing.person, table, columns, personal)
    named = [
        _named(quoted(column), account, erasing.person, with_ids=schema == "sync") for column, kind in columns.items() if kind in _TEXTS
    ]
    is_named = " or ".join(named) or "false"
    is_about = f"{about} or {is_named}" if table == "sync.rejected_records" else about
    source = f"(select *, {is_about} as is_about, not is_about and ({is_named}) as is_named from {quoted(schema)}.{quoted(name)} as t)"
    shown = ", ".join(_rewritten(table, column, kind, account, is_personal=column in personal) for column, kind in columns.items())
    return _Plan(table, source, f"select {shown} from {source}")


def _named(column: str, account: str, person: Person, *, with_ids: bool) -> str:
    """The condition that the column has something of theirs: what is faster to find out comes first. Ids stand in texts of ours alone."""
    text = f"{column}::varchar"
    likely = f"regexp_matches({text}, {literal(person.likely(with_ids=with_ids))})"
    may = MAY_NAME.format(text) + (f" or contains({text}, 'contact')" if with_ids else "")
    is_changed = f"case when {likely} then forget_text({account}, {text}) is distinct from {text} else false end"
    return f"case when {may} then {is_changed} else false end"


def _rewritten(table: str, name: str, kind: str, account: str, *, is_personal: bool) -> str:
    column = quoted(name)
    if name == "contact_id" and kind == "BIGINT":
        return f"case when is_about then forget_contact({account}, {column}) else {column} end as {column}"
    about = _about(table, name, kind, account, is_personal=is_personal)
    return f"case when is_about then {about} when is_named then {_text(column, kind, account)} else {column} end as {column}"


def _text(column: str, kind: str, account: str) -> str:
    """The column with pseudonyms in place of what it names."""
    if kind == "VARCHAR[]":
        return f"list_transform({column}, lambda item: forget_text({account}, item))"
    return f"forget_text({account}, {column}::varchar)::{kind}" if kind in _TEXTS else column


def _about(table: str, name: str, kind: str, account: str, *, is_personal: bool) -> str:
    """What becomes of the column in a row about them."""
    column = quoted(name)
    if (table, name) in _PARTS:  # a published copy may have its hash
        return f"case when {name == 'url'} or json_valid({column}::varchar) then {_PARTS[table, name]} end::{kind}"
    if is_personal and kind != "VARCHAR":
        return f"null::{kind}"
    if kind == "VARCHAR":
        return f"forget_personal({column})" if is_personal else f"forget_kept({account}, {column})"
    return _text(column, kind, account)


def _write(connection: duckdb.DuckDBPyConnection, target: Path, rewritten: Mapping[str, str]) -> None:
    """The current database as the file `target`, with the rows of some tables `rewritten`."""
    own = str(value(connection, "select current_database()"))
    here = "database_name = current_database()"
    relations = rows(connection, f"select 'table', schema_name, table_name, '' from duckdb_tables() where {here} and not temporary")
    relations += rows(connection, f"select 'view', schema_name, view_name, sql from duckdb_views() where {here} and not internal")
    commented = [each for kind, schema, name, _ in relations for each in comments(connection, schema, name, kind=kind)]
    version = str(value(connection, f"select tags['storage_version'] from duckdb_databases() where {here}")).rstrip("+")
    rows(connection, f"attach {literal(str(target))} as rewritten (storage_version {literal(version)})")
    for schema in sorted({schema for _, schema, *_ in relations}):
        rows(connection, f"create schema if not exists rewritten.{quoted(schema)}")
    for kind, schema, name, _ in relations:
        if kind == "table":
            table = f"{quoted(schema)}.{quoted(name)}"
            rows(connection, f"create table rewritten.{table} as {rewritten.get(f'{schema}.{name}', f'from {table}')}")
    rows(connection, "use rewritten")
    make_views(connection, [sql for kind, *_, sql in relations if kind == "view"])
    with transaction(connection):
        for statement in commented:
            rows(connection, statement)
    rows(connection, f"use {quoted(own)}")
    rows(connection, "detach rewritten")
