"""Takes people who asked to be forgotten out of an outbox and its copy, where what waits to be sent is cancelled and what was sent has
pseudonyms, and out of the files of pushes.

Not here: who they are, what becomes of a text (`warehouse.erasure`).
"""

import contextlib
import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path

from pipelines.write_back.input.columns import names_contacts
from pipelines.write_back.input.rows import Rows, text_of
from pipelines.write_back.outbox.outbox import Outbox, Push, outbox_path
from pipelines.write_back.outbox.store import STATEMENTS
from pipelines.write_back.rejected_rows import folder_of, keep_rows, kept_rows, write_rejections
from warehouse.erased_files import begin_erasing, finish_erasing, forget_in_sqlite, mask
from warehouse.erasure import Erasing

#: In this order: what is theirs is found before it is changed.
_CHANGES = ("forget_members", "forget_effects", "forget_revision", "forget_items", "forget_messages")
_BUSY_S = 30.0


def forget_in_outbox(path: Path, erasing: Erasing, *, apply: bool) -> int:
    """How many items and memberships are theirs. Raises sqlite3.Error."""
    with contextlib.closing(sqlite3.connect(path, timeout=_BUSY_S, isolation_level=None)) as connection:
        begin_erasing(connection)
        for name, count, work in (
            ("is_theirs", 5, lambda *item: _is_theirs(erasing, *item)),
            ("is_subject", 2, lambda account, subject: _subject(erasing, account, subject) != subject),
            ("subject_of", 2, lambda account, subject: _subject(erasing, account, subject)),
            ("personal", 1, lambda text: text and erasing.personal(text)),
            ("contact_of", 2, lambda account, number: number and erasing.contact(account, number)),
            ("params_of", 3, lambda account, operation, params: params and erasing.params(account, operation, params)),
            ("drift_of", 1, lambda text: text and json.dumps({name: [None, None] for name in json.loads(text)})),
            ("anywhere", 1, lambda text: text and erasing.anywhere(text)),
        ):
            connection.create_function(name, count, work)
        for name in ("theirs", "left_members"):
            connection.execute(STATEMENTS[name])
        found = connection.execute("select (select count(*) from theirs), (select count(*) from left_members)").fetchone()
        if apply and any(found):
            connection.execute("begin immediate")
            for name in _CHANGES:
                connection.execute(STATEMENTS[name])
            connection.execute("commit")
        if apply:
            finish_erasing(connection)
    return int(sum(found)) + forget_in_sqlite(path, erasing.text, apply=apply)


def _is_theirs(erasing: Erasing, account: str, email: str | None, contact_id: int | None, params: str | None, expected: str | None) -> bool:
    if (email or "").strip().lower() in erasing.person.addresses or (account, contact_id) in erasing.person.contacts:
        return True
    return any(text and erasing.text(text, account) != text for text in (params, expected))


def _subject(erasing: Erasing, account: str, subject: str) -> str:
    """`who|list`, `who|tag`, `who|time|description`: the last may quote them."""
    who, *rest = subject.split("|")
    if who.strip().lower() in erasing.person.addresses:
        return "|".join([erasing.forgotten.address(who.strip().lower()), *rest[:1]])
    if who.isdecimal() and (account, int(who)) in erasing.person.contacts:
        return "|".join([str(erasing.contact(account, int(who))), *rest[:1]])
    return subject


def forget_in_pushes(home: Path, erasing: Erasing, *, apply: bool) -> Iterator[tuple[Path, int]]:
    """Rows about forgotten people go from what is kept of inputs, and with them from rejected.csv; what a dry run left that has some goes
    as a whole. Each file with the rows that it had. Raises OutboxError."""
    for path in sorted(folder_of(home, None).glob("*.csv")):
        if count := mask(path, erasing, apply=False):
            yield path, count
            if apply:
                path.unlink()
    for path in sorted((home / "pushes").glob("*/rows.parquet")):
        with Outbox(outbox_path(home)) as outbox:
            push, rows = outbox.push(int(path.parent.name)), kept_rows(path, "")
            named = [] if rows is None or push is None else [place for place in range(len(rows)) if _is_named(rows, place, push, erasing)]
            csv_path = path.with_name("rejected.csv")
            is_in_csv = csv_path.exists() and mask(csv_path, erasing, apply=False)
            if rows is not None and named:
                yield path, len(named)
                if apply:
                    keep_rows(path, rows, {number for place, number in enumerate(rows.numbers) if place not in set(named)})
            if is_in_csv and apply:
                write_rejections(home, outbox, int(path.parent.name))


def _is_named(rows: Rows, place: int, push: Push, erasing: Erasing) -> bool:
    """Whether a cell of the row is an address, a contact or a value of theirs."""
    cells = ((title, text_of(column[place]) or "") for title, column in rows.cells.items())
    return any(
        erasing.forgotten.is_named(push.account, text, is_id=names_contacts(title, {})) or erasing.anywhere(text) != text
        for title, text in cells
    )
