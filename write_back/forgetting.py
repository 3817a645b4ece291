"""Deletes people who asked to be forgotten from an outbox and its copy, and from the rows of
pushes.

Not here: the list of these people (`warehouse.forgetting`)."""

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from pathlib import Path

from home.door import pushes_of
from warehouse.disk import remove_path
from warehouse.forgetting import Forgotten
from write_back.outbox.outbox import Outbox
from write_back.outbox.store import STATEMENTS
from write_back.planning import rows_about
from write_back.rejected_rows import keep_rows, kept_rows, write_rejections

_BUSY_S = 60


def delete_from_outbox(path: Path, forgotten: Forgotten, *, apply: bool) -> int:
    """How many items and claims of the outbox are about these people. With `apply` they are
    deleted, also from free pages. Raises sqlite3.Error."""
    with closing(sqlite3.connect(path, timeout=_BUSY_S, isolation_level=None)) as connection:
        connection.create_function("is_theirs", 4, partial(_names_person, forgotten))
        connection.create_function("is_their_subject", 2, partial(_is_their_subject, forgotten))
        connection.execute(STATEMENTS["theirs"])
        ((count,),) = connection.execute(STATEMENTS["count_theirs"])
        if apply:
            connection.execute("begin immediate")
            for name in ("forget_effects", "forget_items", "forget_claims"):
                connection.execute(STATEMENTS[name])
            connection.execute("commit")
            connection.execute("vacuum")
            connection.execute("pragma wal_checkpoint(truncate)")
    return int(count)


def _names_person(
    forgotten: Forgotten,
    account: str,
    email: str | None,
    contact_id: int | None,
    params: str | None,
) -> bool:
    if contact_id is not None and forgotten.is_contact(account, contact_id):
        return True
    values = json.loads(params).values() if params else ()
    return any(map(forgotten.is_address, (email, *map(str, values))))


def _is_their_subject(forgotten: Forgotten, account: str, subject: str) -> bool:
    """`subject`: `who|list`, `who|tag` or `who|time|description`."""
    return forgotten.is_named(account, subject.partition("|")[0], is_id=True)


def delete_from_pushes(
    home: Path, outbox: Outbox, forgotten: Forgotten, *, apply: bool
) -> Iterator[tuple[Path, int]]:
    """How many rows of each stored input are about these people. With `apply` they are deleted, and
    rejected.csv is written again. An input that is damaged, or whose push is unknown, is deleted as
    a whole. Raises OutboxError."""
    folders = (folder for folder in pushes_of(home).glob("*") if folder.name.isdecimal())
    for folder in sorted(folders):
        path = folder / "rows.parquet"
        push = outbox.find_push(int(folder.name))
        rows = kept_rows(path)
        if push is None or rows is None:
            if apply:
                remove_path(folder)
            continue
        places = rows_about(rows, push.account, forgotten, push.options.get("mapping", {}))
        if not places:
            continue
        yield path, len(places)
        if apply:
            left = rows.take_rows(sorted(set(range(len(rows))) - places))
            keep_rows(path, left, left.numbers, push.kind)
            write_rejections(home, outbox, push)
