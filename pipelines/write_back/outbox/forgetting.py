"""Takes people who asked to be forgotten out of an outbox and its copy: what waits to be sent is cancelled, what was sent has pseudonyms.

Not here: who they are, what becomes of a text (`warehouse.erasure`).
"""

import contextlib
import json
import sqlite3
from pathlib import Path

from pipelines.write_back.outbox.store import STATEMENTS
from warehouse.erased_files import begin_erasing, finish_erasing, forget_in_sqlite
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
