"""Resumes with the copy of an outbox that is damaged or gone, so that nothing is sent twice. Not here: making the copy (`store`)."""

import contextlib
import datetime as dt
import json
import logging
import shutil
import sqlite3
from collections.abc import Collection
from pathlib import Path

from pipelines.write_back.outbox.store import OutboxDamaged, Store, copy_of, held_note, revision_note
from warehouse.archive.disk import set_aside

log = logging.getLogger(__name__)

_WHY = "'the outbox was damaged: whether it was sent is not known'"
#: The copy was made before the requests of its push left.
_MAYBE_SENT = (
    f"update item set state = 'unknown', message = {_WHY}, sent_at = coalesce(sent_at, planned_at), changed_at = ?, revision = ?"  # noqa: S608
    " where state in ('planned', 'sending') and operation is not null"
)
#: What is not idempotent, of contacts that are not known, cannot be looked for.
_NOT_TO_BE_FOUND = (
    f"update item set state = 'rejected', message = {_WHY}, rejected_by = 'check', changed_at = ?, revision = ?"  # noqa: S608
    " where state = 'unknown' and contact_id is null and push_id in"
    " (select push_id from push where kind in (select value from json_each(?)))"
)


def restore(path: Path, now: float, not_idempotent: Collection[str]) -> bool:
    """Put the copy in the outbox's place, which is set aside; False when there is no need to.

    What the copy has open counts as unknown: the next push looks for what is of a kind `not_idempotent` and rejects what it cannot look
    for; anything else may be sent twice without harm. Raises OutboxDamaged when there is no copy to resume with.
    """
    if not (path.exists() or copy_of(path).exists()):
        return False
    try:
        with contextlib.closing(Store(path)) as store:
            store.check()
        return False
    except OutboxDamaged as problem:
        if not copy_of(path).exists():
            raise
        log.warning("%s", problem)
    temporary = path.with_name(f".{path.name}")
    _make(path, temporary, now, not_idempotent)
    for suffix in ("-wal", "-shm", ""):
        if (part := Path(f"{path}{suffix}")).exists():
            set_aside(part)
    revision_note(path).unlink(missing_ok=True)
    temporary.rename(path)
    return True


def _make(path: Path, temporary: Path, now: float, not_idempotent: Collection[str]) -> None:
    try:
        with contextlib.closing(Store(copy_of(path))) as copy:
            copy.check()
    except OutboxDamaged as problem:
        raise OutboxDamaged(
            f"the outbox {path} is damaged, and so is its copy ({problem}): move both away to begin anew. What was sent is then only"
            " known from sync.writebacks, and activities that are pushed again would arrive twice"
        ) from problem
    Path(f"{temporary}-journal").unlink(missing_ok=True)
    shutil.copyfile(copy_of(path), temporary)
    temporary.chmod(0o600)
    _doubt(temporary, now, not_idempotent)


def hold(path: Path, made_at: dt.datetime, now: float, not_idempotent: Collection[str]) -> None:
    """The outbox came from the backup of that time. What it has open counts as unknown, and nothing is sent until a person decides."""
    held_note(path).write_text(
        f"nothing was sent: this outbox was restored from the backup of {made_at:%Y-%m-%d %H:%M} UTC, and what was pushed later is not "
        "known to it: pushing it again would send it twice. See what arrived (`marketing-sync sync`, the service itself), then "
        "`marketing-sync restore --release` lets pushes go on",
        encoding="utf-8",
    )
    if path.exists():
        _doubt(path, now, not_idempotent)


def _doubt(path: Path, now: float, not_idempotent: Collection[str]) -> None:
    with contextlib.closing(sqlite3.connect(path)) as connection, connection:
        (revision,) = connection.execute("update revision set value = value + 1 returning value").fetchone()
        connection.execute(_MAYBE_SENT, (now, revision))
        connection.execute(_NOT_TO_BE_FOUND, (now, revision, json.dumps(not_idempotent)))
