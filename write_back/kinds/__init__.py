"""The kinds of push, each with its own file. `kind.py` says what a kind has to define. Contacts
have more files; their names begin with `contact_`.

A new kind needs:

- a class in a file here, and an instance of it in `KINDS` below;
- its options, help and example query in `home.options.PUSH_OPTIONS`;
- the usual spellings of its columns in `input/spellings.toml`;
- an `EffectKind`, if none fits, and its description in `warehouse/sync_tables.toml`;
- what `push revert` restores of it (`reverting`);
- tests in `tests/write_back/kinds`, and a row in docs/sending-back.md."""

from __future__ import annotations

import threading
from collections.abc import Collection
from dataclasses import replace
from typing import TYPE_CHECKING

from marketing_api.errors import AuthenticationFailed, BudgetSpent, Stopped
from write_back.account_state import Known
from write_back.column_samples import describe_columns
from write_back.input.columns import pick_columns
from write_back.input.rows import Rows
from write_back.item import DONE, RETRY_POLICY, Options, Plan, RetryPolicy, State
from write_back.kinds.activities import ACTIVITIES
from write_back.kinds.contacts import CONTACTS
from write_back.kinds.kind import Kind
from write_back.kinds.tags import TAGS
from write_back.outbox.outbox import Entry, Outbox
from write_back.outbox.store import OutboxTooNew
from write_back.verification import Labels, ReadBack

if TYPE_CHECKING:
    from marketing_api.client import Client

__all__ = [
    "ACTIVITIES",
    "CONTACTS",
    "KINDS",
    "TAGS",
    "Kind",
    "make_plan",
    "verify_pushes",
]


class _Kinds(dict[str, Kind]):
    def __missing__(self, name: str) -> Kind:
        raise OutboxTooNew(
            f"the outbox has a push of {name}, which this version does not send: use the version "
            "that made it, or move the outbox away"
        )


#: By name, in the order in which they are listed and read back.
KINDS = _Kinds({kind: kind for kind in (CONTACTS, TAGS, ACTIVITIES)})

#: An item of these kinds whose response was lost is looked for before it is sent again.
NOT_IDEMPOTENT = tuple(kind for kind in KINDS.values() if not kind.is_idempotent)


def make_plan(kind: Kind, rows: Rows, known: Known, outbox: Outbox, options: Options) -> Plan:
    """What a push of these rows would do. Sends no request. Raises InputError when the input as a
    whole cannot be used."""
    picked = pick_columns(
        rows, kind.columns, options, known.lists.field_names() if kind.columns.takes_fields else ()
    )
    plan = kind.planning(kind, rows, known, outbox, options, picked).make_plan()
    return replace(plan, input_columns=describe_columns(rows, picked, known))


def verify_pushes(
    outbox: Outbox,
    client: Client,
    push_ids: Collection[int],
    how: str = "sample",
    *,
    labels: Labels | None = None,
    stop: threading.Event | None = None,
    policy: RetryPolicy = RETRY_POLICY,
) -> str | None:
    """Read back `all`, a `sample` or `none`; entries that are unknown or have drifted in any case.
    The outbox stores the results. Returns why not everything could be read."""
    sent: list[Entry] = []
    for push_id in sorted(push_ids):
        sent += outbox.list_entries(push_id, [*DONE, State.UNKNOWN])
    reading = ReadBack(outbox, client, labels or {}, stop or threading.Event(), policy)
    try:
        for kind in KINDS.values():
            entries = [entry for entry in sent if entry.kind == kind]
            if entries:
                kind.read_back(reading, entries, how)
    except (Stopped, BudgetSpent, AuthenticationFailed) as error:
        return "stopped" if isinstance(error, Stopped) else str(error)
    return None
