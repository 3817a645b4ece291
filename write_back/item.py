"""Values that all steps of a push share: items, their effects and states, plans, and waiting
times."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from hashlib import blake2b
from typing import NamedTuple

import msgspec

from home.output import Change, InputColumn


class State(StrEnum):
    PLANNED = "planned"  # in the outbox, nothing sent
    SENDING = "sending"  # committed before the request leaves; found after a crash it means unknown
    APPLIED = "applied"  # the service responded ok
    VERIFIED = "verified"  # read back, and as intended
    REJECTED = "rejected"  # by our checks or by the service, with its reason
    UNKNOWN = "unknown"  # sent, and no whole response came
    SKIPPED = "skipped"  # nothing to do: unchanged, sent before, or cancelled


#: The service queues writes: for this many seconds after its `ok`, it may not show an effect yet.
QUEUE_S = 120.0

#: Still to be sent or resolved.
OPEN = (State.PLANNED, State.SENDING, State.UNKNOWN)
#: Accepted by the service.
DONE = (State.APPLIED, State.VERIFIED)


@dataclass(frozen=True, slots=True)
class Options:
    """The options of a plan."""

    #: Our column → the input's.
    mapping: Mapping[str, str] = field(default_factory=dict)
    #: Columns of the input that are left out.
    ignore: tuple[str, ...] = ()
    #: Also send rows that are unchanged, except activities.
    send_all: bool = False
    #: An empty cell empties its custom field.
    clear_empty: bool = False
    #: A status may make a person active again (`consent`).
    resubscribe: bool = False
    #: An audience sync, which states the same rows every night. Unchanged rows, and rows that were
    #: rejected before, are neither stored nor reported again.
    is_standing: bool = False
    #: Send custom fields only where they are empty.
    fill_only: bool = False
    #: "last": of rows that contradict each other, the last one counts.
    keep: str = "none"
    #: The only plans (`plan_id`) that are sent, if any are named.
    if_plan: Sequence[str] = ()


class EffectKind(StrEnum):
    """What a kind of push does to contacts. It decides whether a request may be sent twice, and is
    a column of `sync.writebacks`."""

    JOINS = "joins"  # puts them on lists, or changes them there
    TAGS = "tags"
    NOTES = "notes"  # writes into their timelines


class BeforePush(msgspec.Struct, frozen=True):
    """How a contact was on a list before a push. `values`: field id (or `status`) → value, of those
    that are known."""

    exists: bool
    values: dict[str, str]


class RevertedValues(msgspec.Struct, frozen=True):
    """What a reverted push sent to a contact on a list. `labels`: field id → label."""

    status: str | None
    fields: dict[str, str]
    labels: dict[str, str]


class Expected(
    msgspec.Struct,
    frozen=True,
    omit_defaults=True,
    rename={
        "contact_ids": "ids",
        "known_statuses": "held",
        "kept_statuses": "statuses",
        "left_lists": "left",
        "is_repeated": "again",
        "look_up_count": "look_up",
        "reverted": "reverts",
    },
):
    """What verification compares with the service, and what sending needs to know about an item.

    The outbox stores it as JSON, under the names of `rename`. Contact items use all but the last
    two values, activities the last three, tags none."""

    #: The status that contacts get.
    status: str | None = None
    #: Field id → value.
    fields: dict[str, str] = {}
    lists: list[int] = []
    #: List → contacts, where they are edited by id.
    contact_ids: dict[int, list[int]] = {}
    #: List → a known status other than active.
    known_statuses: dict[int, str] = {}
    #: List → the status that a contact keeps; None: any.
    kept_statuses: dict[int, str | None] = {}
    #: Lists where a contact keeps its status although the row has another one.
    left_lists: list[int] = []
    #: `--resubscribe` is given, and the row has a status.
    may_raise: bool = False
    #: The service accepted the same before, but shows other values.
    is_repeated: bool = False
    #: List → what a revert restores.
    before: dict[int, BeforePush] = {}
    #: A revert is sent only while these are unchanged.
    reverted: RevertedValues | None = None
    #: Requests that look up the contact or its timeline just before sending.
    look_up_count: int = 0
    description: str | None = None
    #: When the activity happened, in unix seconds.
    at: int | None = None


@dataclass(frozen=True, slots=True)
class Item:
    """One request, its input rows, and what it changes.

    `rows`: as in a spreadsheet; the first row below the header is 2. `effects`: subject → content.
    Equal contents are the same change, and the last content of a subject decides whether a later
    row still changes anything. Subjects are `address|list id` for contacts, `who|tag` for tags,
    `who|time|description` for activities (`who`: the contact id, or the address in lower case).
    `must_look_up`: the warehouse does not know the address, so its contact id is
    looked up before it is sent."""

    kind: str
    rows: tuple[int, ...]
    operation: str
    params: Mapping[str, str] = field(repr=False)  # as on the wire, without what is looked up
    effects: Mapping[str, str] = field(repr=False)
    expected: Expected = field(default=Expected(), repr=False)
    email: str | None = field(default=None, repr=False)
    contact_id: int | None = None
    must_look_up: bool = False


@dataclass(frozen=True, slots=True)
class Reason:
    """Why rows are not sent, or why their request is still open; `by_service`: the service refused
    them, now or earlier."""

    rows: tuple[int, ...]
    reason: str
    by_service: bool = False
    email: str | None = field(default=None, repr=False)
    contact_id: int | None = None


@dataclass(frozen=True, slots=True)
class Source:
    """The source of rows: the file's name or `query`, and a hash of all cells."""

    name: str = ""
    content_hash: str = ""


class Earlier(NamedTuple):
    """An earlier push with open requests."""

    push_id: int
    source: str
    kind: str
    open_count: int
    look_ups: int


@dataclass(frozen=True)
class Plan:
    """What a push would do: every row of the input counts as exactly one of new, changed, idle, bad
    and reported."""

    account: str
    kind: str
    source: Source
    row_count: int
    items: Sequence[Item] = field(repr=False)
    new_count: int = 0  # rows
    changed_count: int = 0
    idle: Sequence[Reason] = field(default=(), repr=False)
    bad: Sequence[Reason] = field(default=(), repr=False)
    # as bad, and reported by an earlier push
    reported: tuple[Reason, ...] = field(default=(), repr=False)
    changes: tuple[Change, ...] = field(default=(), repr=False)  # a sample
    warnings: tuple[str, ...] = ()
    earlier: tuple[Earlier, ...] = ()  # sent first
    columns: tuple[
        tuple[str, str], ...
    ] = ()  # ours, and the input's that was mapped to it or guessed to mean it
    input_columns: Sequence[InputColumn] = field(default=(), repr=False)
    unknown_address_count: int = 0  # addresses of items that the warehouse does not know

    @property
    def request_count(self) -> int:
        """Requests that sending takes, including the account's owner, look-ups and what earlier
        pushes left open, without verification."""
        count = len(self.items) + self.look_up_count + self.earlier_count
        return count and 1 + count

    @cached_property
    def look_up_count(self) -> int:
        """Requests that look up an address (once), or a contact or its timeline just before a
        request."""
        look_ups = sum(item.expected.look_up_count for item in self.items)
        return look_ups + len({item.email for item in self.items if item.must_look_up})

    @property
    def earlier_count(self) -> int:
        return sum(entry.open_count + entry.look_ups for entry in self.earlier)

    @cached_property
    def plan_id(self) -> str:
        """Identifies what the plan sends, regardless of the order."""
        ids = (
            repr((item.operation, item.email, item.contact_id, dict(item.params)))
            for item in self.items
        )
        whole = repr((self.account, self.kind, self.earlier))
        return blake2b("\n".join([*sorted(ids), whole]).encode(), digest_size=6).hexdigest()

    @cached_property
    def bad_count(self) -> int:
        """Rows that our own checks reject."""
        return sum(not row.by_service for row in self.bad)


class Past(NamedTuple):
    """The last change of a subject."""

    item_id: int
    content: str
    state: State
    message: str | None
    done_at: float | None  # in the order of requests (`exchange.order_of`)
    verified_at: float | None = None  # it was read back as intended
    is_drifted: bool = False  # done, but with a mismatch on read-back
    source: str = ""  # of its push (`Source.name`)
    earlier: "Past | None" = None  # the change before (`Outbox.find_last`)

    @property
    def is_open(self) -> bool:
        return self.state in OPEN

    @property
    def is_done(self) -> bool:
        return self.state in DONE and not self.is_drifted

    @property
    def is_in_force(self) -> bool:
        """Done, or still to be done."""
        return self.is_done or self.is_open

    @property
    def is_refused(self) -> bool:
        """Rejected, or with a mismatch on read-back: only `push retry` sends it again."""
        return self.state is State.REJECTED or self.is_drifted

    def is_newer(self, as_of: float | None) -> bool:
        """Whether a reading at `as_of` may not have this change yet."""
        if self.is_open or as_of is None or self.done_at is None:
            return True
        if self.verified_at is not None:
            return self.verified_at > as_of
        return self.done_at > as_of - QUEUE_S


# ---- attempts and waiting times


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Times in seconds. Tests pass shorter ones."""

    #: Sixteen are enough for 15 requests/s at 600 ms and more; the others replace stalled ones.
    workers: int = 24
    #: A response counts as lost when no byte came for this long. A longer wait would only block a
    #: worker, because the outcome is looked up anyway.
    timeout_s: float = 30.0
    #: The queue of synccontact takes seconds (observation 6). An activity that is missing in the
    #: last look counts as never arrived.
    first_look_s: float = 6.0
    last_look_s: float = 30.0
    #: An idempotent request is not looked for but sent again, with exponential back-off: three
    #: times as long each time (40 s in all).
    repeat_s: float = 1.0
    #: After this many lost responses, an item stays unknown until a person decides.
    attempts: int = 5
    #: After this many errors in a row, sending stops.
    unavailable_in_row: int = 5
    unknown_in_row: int = 15
    #: Verification waits this long for the queue, and reads at first in this interval.
    verify_wait_s: float = 30.0
    verify_every_s: float = 3.0


RETRY_POLICY = RetryPolicy()
