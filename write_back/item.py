"""What is sent back, as values shared by all steps: items, their effects and states, and the
figures of trying. Nothing here does anything."""

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


#: The service's own queue may show an effect so much later than it responded ok: a reading within
#: these seconds may still be without it.
QUEUE_S = 120.0

#: Work is left to be done on these.
OPEN = (State.PLANNED, State.SENDING, State.UNKNOWN)
#: The service has taken these.
DONE = (State.APPLIED, State.VERIFIED)


@dataclass(frozen=True, slots=True)
class Options:
    """What people may choose about a plan. `mapping`: our column → the input's. `ignore`: columns
    of the input that are left out. `send_all`: send what is known to be so already, too (never
    activities again). `clear_empty`: an empty cell empties its custom field. `resubscribe`: a
    status may make somebody active who is not (`consent`). `is_standing`: it says again and again
    how everything should be (an audience sync); of rows that are so, and of those that were
    rejected before, nothing is kept, told or sent again. `fill_only`: custom fields are sent where
    they are empty. `keep` is "last" where the last of rows that contradict each other counts.
    `if_plan`: the only plans (`plan_id`) that are sent, if any are named."""

    mapping: Mapping[str, str] = field(default_factory=dict)
    ignore: tuple[str, ...] = ()
    send_all: bool = False
    clear_empty: bool = False
    resubscribe: bool = False
    is_standing: bool = False
    fill_only: bool = False
    keep: str = "none"
    if_plan: Sequence[str] = ()


class EffectKind(StrEnum):
    """What a kind of push does to contacts: whether it may be sent twice follows from it, and
    `sync.writebacks` has it."""

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
    """One request to be sent, the input rows it stands for, and what it is to bring about.

    `rows`: as a spreadsheet numbers them, the first below the header is 2. `effects`: subject →
    what it becomes; equal contents are the same change, and the last one on a subject decides
    whether a later row still has something to do. Subjects are `address|list id` for contacts,
    `who|tag` for tags, `who|time|description` for activities (`who`: the contact id, or the address
    in lower case). `must_look_up`: the warehouse does not know the address, so its contact id is
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
    """Why rows are not sent, or their request is still open; `by_service`: the service refused
    them, now or before."""

    rows: tuple[int, ...]
    reason: str
    by_service: bool = False
    email: str | None = field(default=None, repr=False)
    contact_id: int | None = None


@dataclass(frozen=True, slots=True)
class Source:
    """Where rows came from: the file's name or `query`, and a hash of all cells."""

    name: str
    content_hash: str


class Earlier(NamedTuple):
    """What an earlier push has left open, in requests."""

    push_id: int
    source: str
    kind: str
    open_count: int
    look_ups: int


@dataclass(frozen=True)
class Plan:
    """What a push would do: every row of the input is in exactly one of new, changed, idle, bad or
    told."""

    account: str
    kind: str
    source: Source
    row_count: int
    items: Sequence[Item] = field(repr=False)
    new_count: int = 0  # rows
    changed_count: int = 0
    idle: Sequence[Reason] = field(default=(), repr=False)
    bad: Sequence[Reason] = field(default=(), repr=False)
    # as bad, and told when they first were
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
        """Requests that sending takes: whose account it is, look-ups and what earlier pushes left
        included, verification aside."""
        count = len(self.items) + self.look_up_count + self.earlier_count
        return count and 1 + count

    @cached_property
    def look_up_count(self) -> int:
        """Requests: who an address is, once; how somebody stands, or what a timeline shows, just
        before it is sent."""
        look_ups = sum(item.expected.look_up_count for item in self.items)
        return look_ups + len({item.email for item in self.items if item.must_look_up})

    @property
    def earlier_count(self) -> int:
        return sum(entry.open_count + entry.look_ups for entry in self.earlier)

    @cached_property
    def plan_id(self) -> str:
        """Tells it from a plan that would send something else, in whatever order."""
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
    """The last thing that was done about a subject."""

    item_id: int
    content: str
    state: State
    message: str | None
    done_at: float | None  # in the order of requests (`exchange.order_of`)
    verified_at: float | None = None  # it was read back as intended: the queue is behind it
    is_drifted: bool = False  # done, and then a mismatch on read-back
    source: str = ""  # of its push (`Source.name`)

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
        """In words, or by what was read back of it: it is sent again when somebody wants it."""
        return self.state is State.REJECTED or self.is_drifted

    def is_refused_still(self, as_of: float | None) -> bool:
        """Unless what was read at `as_of` tells what became of it."""
        return self.is_refused and (not self.is_drifted or self.is_newer(as_of))

    def is_newer(self, as_of: float | None) -> bool:
        """Whether what was done (or will be) is not in what was read at `as_of`."""
        if self.is_open or as_of is None or self.done_at is None:
            return True
        return (
            self.verified_at > as_of
            if self.verified_at is not None
            else self.done_at > as_of - QUEUE_S
        )


# ---- how often something is tried, and how long


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Times in seconds. Tests pass shorter ones."""

    #: Sixteen are enough for 15 requests/s at 600 ms and more; stalled ones must not hold up the
    #: others.
    workers: int = 24
    #: Without a byte for so long, a response counts as lost. Longer would only keep a worker from
    #: other work: what happened is found out by looking.
    timeout_s: float = 30.0
    #: The queue of synccontact was seen to take seconds (observation 6). What is there after the
    #: first look is found cheaply; what is not there after the last one is taken never to have
    #: arrived.
    first_look_s: float = 6.0
    last_look_s: float = 30.0
    #: What is idempotent is not looked for: it is sent again with exponential back-off, three times
    #: as long each time (40 s in all).
    repeat_s: float = 1.0
    #: An item whose response is lost again and again is left unknown, for a person.
    attempts: int = 5
    #: Errors in a row, with nothing applied between them, after which nothing more is sent.
    unavailable_in_row: int = 5
    unknown_in_row: int = 15
    #: Reading back waits so long for the queue, looking every so often.
    verify_wait_s: float = 30.0
    verify_every_s: float = 3.0


RETRY_POLICY = RetryPolicy()
