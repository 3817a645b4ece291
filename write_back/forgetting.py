"""Takes people who asked to be forgotten out of an outbox and its copy, where what waits to be sent is
cancelled and what was sent has pseudonyms, and out of the rows of pushes.

Not here: who they are, what becomes of a text (`warehouse.forgetting`).
"""

import json
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path

from home.door import pushes_of
from warehouse.erasure import BUSY_S, forget_in_sqlite, found_in
from warehouse.forgetting import Forgotten
from write_back.input.rows import Rows
from write_back.outbox.outbox import open_outbox
from write_back.outbox.store import STATEMENTS
from write_back.planning import people_in
from write_back.rejected_rows import keep_rows, kept_rows, write_rejections

#: In this order: what is theirs is found before it is changed.
_CHANGES = ("forget_claims", "forget_effects", "forget_revision", "forget_items")


def forget_in_outbox(path: Path, forgotten: Forgotten, *, apply: bool) -> int:
    """How many items, claims and other texts are theirs. Raises sqlite3.Error."""
    functions: Mapping[str, Callable[..., str | int | None]] = {
        "is_theirs": partial(_is_theirs, forgotten),
        "subject_of": partial(_subject, forgotten),
        "becomes": forgotten.becomes,
        "params_of": partial(_params, forgotten),
        "drift_of": lambda text: text and json.dumps({name: [None, None] for name in json.loads(text)}),
    }
    with closing(sqlite3.connect(path, timeout=BUSY_S, isolation_level=None)) as connection:
        for name, work in functions.items():
            connection.create_function(name, -1, work)
        for name in ("theirs", "left_claims"):
            connection.execute(STATEMENTS[name])
        (count,) = connection.execute(
            "select (select count(*) from theirs) + (select count(*) from left_claims)"
        ).fetchone()
        if apply and count:
            connection.execute("begin immediate")
            for name in _CHANGES:
                connection.execute(STATEMENTS[name])
            connection.execute("commit")
    return int(count) + forget_in_sqlite(path, forgotten, apply=apply)


def _is_theirs(
    forgotten: Forgotten,
    account: str,
    email: str | None,
    contact_id: int | None,
    params: str | None,
    expected: str | None,
) -> bool:
    if contact_id is not None and forgotten.is_contact(account, contact_id):
        return True
    values = [str(each) for text in (params, expected) if text for each in json.loads(text).values()]
    return any(forgotten.is_named(account, each, is_id=False) for each in (email or "", *values))


def _params(forgotten: Forgotten, account: str, operation: str, params: str | None) -> str | None:
    if params is None:
        return None
    left = forgotten.params(account, operation, json.loads(params), is_about=True)
    return json.dumps(left, ensure_ascii=False)


def _subject(forgotten: Forgotten, account: str, subject: str) -> str:
    """`who|list`, `who|tag`, `who|time|description`: the last may quote them."""
    who, *rest = subject.split("|")
    if forgotten.is_address(who):
        return "|".join([forgotten.address(who), *rest[:1]])
    if who.isdecimal() and forgotten.is_contact(account, who):
        return "|".join([str(forgotten.contact(account, who)), *rest[:1]])
    return subject


def forget_in_pushes(home: Path, forgotten: Forgotten, *, apply: bool) -> Iterator[tuple[Path, int]]:
    """Rows about forgotten people go from what is kept of inputs, cells of others lose what names them, and
    rejected.csv is written anew of both. Each file with what it had. Raises OutboxError."""
    if not (paths := sorted(pushes_of(home).glob("*/rows.parquet"))):
        return
    with open_outbox(home) as outbox:
        for path in paths:
            push_id = int(path.parent.name)
            push, rows = outbox.push(push_id), kept_rows(path, "")
            if push is not None and rows is not None:
                after = without(rows, push.account, forgotten)
                if count := _differing(rows, after):
                    yield path, count
                    if apply:
                        keep_rows(path, after, after.numbers)
            rejected = path.with_name("rejected.csv")
            if rejected.exists() and (count := found_in(rejected, forgotten)):
                yield rejected, count
                if apply:
                    write_rejections(home, outbox, push_id)


def without(rows: Rows, account: str, forgotten: Forgotten) -> Rows:
    """The rows that are not about them, without what names them."""
    named, _ = people_in(rows, account, forgotten, {})
    left = rows.at(place for place in range(len(rows)) if place not in named)
    cells = {
        title: [forgotten.text(cell, account) if isinstance(cell, str) else cell for cell in column]
        for title, column in left.cells.items()
    }
    return replace(left, cells=cells)


def _differing(before: Rows, after: Rows) -> int:
    """How many rows are gone or not what they were."""
    same = set(zip(after.numbers, *after.cells.values(), strict=True))
    return sum(each not in same for each in zip(before.numbers, *before.cells.values(), strict=True))
