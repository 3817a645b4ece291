"""What commands print with `--json`: one document each, declared here; docs/json-output.md and its schema are made of it.

A field is never renamed or removed, nor does it change its type; new ones may be added. Times are ISO 8601 in UTC. Not here: where the
values come from (`commands`, `write_back.push_report`).
"""

import datetime as dt
from typing import Annotated

import msgspec
from msgspec import Meta, Struct

Moment = dt.datetime | None


class Table(Struct):
    """One table of one account."""

    account: str
    table: str
    rows: int
    oldest: Annotated[Moment, Meta(description="when the part that was read longest ago was read")]
    newest: Annotated[Moment, Meta(description="when it was read last")]
    due: Annotated[Moment, Meta(description="when it is to be read again")]
    parts: Annotated[int, Meta(description="lists, days or contacts that are read one by one")]
    incomplete: Annotated[int, Meta(description="of them, not whole")]


class Contacts(Struct):
    """How many of an account's contacts have been read one by one."""

    account: str
    contacts: int
    timelines: int
    coupons: int
    oldest: Moment
    cut: Annotated[int, Meta(description="timelines that the service cut")]


class LastPlan(Struct):
    """What the last sync requested contact by contact, and how much of it brought something new."""

    account: str
    question: str
    planned_at: dt.datetime
    planned: int
    asked: int
    changed: int
    why: str


class Run(Struct):
    """One of the last runs."""

    started_at: dt.datetime
    ended_at: Moment
    job: str
    outcome: Annotated[str | None, Meta(description="null: it runs, or died")]
    request_count: int
    waited_s: float | None
    message: str | None


class Rejected(Struct):
    """Records that could not be read."""

    account: str
    table: str
    reason: str
    records: int


class SchemaChange(Struct):
    """How the service's responses, or the published file, differed from what they were before."""

    account: Annotated[str | None, Meta(description="null: the published file, which holds all of them")]
    noticed_at: dt.datetime
    table: str
    field: str | None
    change: str
    before: str | None
    after: str | None
    sample: Annotated[str | None, Meta(description="what the value is like, never the value")]


class Published(Struct):
    """The copy for analysts."""

    file: str
    published_at: dt.datetime
    data_as_of: Moment
    personal_data: str
    tables: int
    rows: int


class Part(Struct):
    """A file or folder of the home, by its name up to a dot."""

    part: str
    bytes: int
    growth: Annotated[int | None, Meta(description="bytes in 30 days, as in the last 30; null: it was not measured a day before")] = None


class Status(Struct):
    """`marketing-sync status --json`."""

    tables: list[Table] = []
    contacts: list[Contacts] = []
    plans: list[LastPlan] = []
    runs: list[Run] = []
    rejected: list[Rejected] = []
    schema_changes: Annotated[list[SchemaChange], Meta(description="the last ones, the newest first")] = []
    published: Published | None = None
    home: Annotated[list[Part], Meta(description="what takes room, the largest first")] = []
    notices: Annotated[list[str], Meta(description="what a person should know first; empty while all is well")] = []


class FleetAccount(Struct):
    """One account of the lake. Growth and requests count back from its publishing."""

    account: str
    shard: str
    contacts: int
    contacts_7_days: Annotated[int, Meta(description="of them, registered in the last 7 days")]
    contacts_30_days: int
    events: int
    campaigns: int
    data_as_of: Moment
    published_at: dt.datetime
    age_hours: Annotated[float | None, Meta(description="of the newest data, now")]
    failed_runs_7_days: Annotated[int, Meta(description="of its shard: one run reads all its accounts")]
    rejected_records: int
    incomplete_parts: Annotated[int, Meta(description="lists, days or contacts that were not read whole")]
    requests_last_night: Annotated[int, Meta(description="in the last 24 hours")]
    requests_30_days: int


class Fleet(Struct):
    """`marketing-sync status --fleet --json`."""

    accounts: list[FleetAccount]
    notices: Annotated[list[str], Meta(description="what is the matter with shards; empty while all is well")]


class Finding(Struct):
    """One look: `text` says what to do where it is not well."""

    what: str
    is_well: bool
    text: str


class Findings(Struct):
    """`marketing-sync doctor --json` and `check --json`."""

    is_well: bool
    findings: list[Finding]


class Planned(Struct):
    """Requests of one kind."""

    what: str
    requests: int
    left_out: int
    of: Annotated[int | None, Meta(description="contacts or campaigns that there are")]
    why: dict[str, int]


class AccountPlan(Struct):
    """What the next sync would request of an account."""

    account: str
    requests: int
    seconds: float
    rate: Annotated[float, Meta(description="requests a second")]
    planned: list[Planned]
    sentences: Annotated[list[str], Meta(description="the same as on a terminal")]


class Plan(Struct):
    """`marketing-sync plan --json`; no account before the first sync."""

    accounts: list[AccountPlan]


class Reason(Struct):
    """Why rows of the input were not sent or not taken; rows are counted as in the file."""

    rows: list[int]
    reason: str
    by_service: Annotated[bool, Meta(description="false: our own checks rejected them")]
    is_permanent: Annotated[bool | None, Meta(description="the same request is refused again; null: not known")] = None
    remedy: Annotated[str | None, Meta(description="what to do; null: not known")] = None


class Change(Struct):
    """One value that would change."""

    row: int
    contact: Annotated[str, Meta(description="address or id")]
    column: str
    old: str | None
    new: str | None


class PushPlan(Struct):
    """What a push would do."""

    account: str
    kind: str
    source: str
    rows: int
    new: int
    changed: int
    idle: Annotated[dict[str, int], Meta(description="rows with nothing to send, by reason")]
    invalid: list[Reason]
    changes: Annotated[list[Change], Meta(description="a sample")]
    additions: Annotated[list[Change], Meta(description="a sample of new rows, where `changes` has none of them")]
    columns: Annotated[dict[str, str], Meta(description="ours, and the input's that was mapped to it or guessed to mean it")]
    unknown_addresses: Annotated[int, Meta(description="that the warehouse does not know")]
    notes: list[str]
    requests: int
    seconds: float
    refusal: Annotated[str | None, Meta(description="why nothing is sent however it is asked for")]


class PushResult(Struct):
    """What became of a push."""

    push: int
    account: str
    kind: str
    source: str
    rows: Annotated[dict[str, int], Meta(description="of the input, by state")]
    requests: Annotated[dict[str, int], Meta(description="by state")]
    reasons: Annotated[list[Reason], Meta(description="what was not taken, equal reasons together, the most frequent first")]
    waiting: list[Reason]
    mismatches: Annotated[dict[str, int], Meta(description="requests that read back otherwise than they were sent, by field")]
    open: Annotated[int, Meta(description="requests that are left")]
    shortfall: Annotated[int, Meta(description="0: everything is done")]
    requests_sent: int | None
    stopped: str | None
    rejected_csv: str | None


class Push(Struct):
    """`marketing-sync push KIND --json`, `push retry --json` and `push status N --json`."""

    plan: PushPlan | None
    results: Annotated[list[PushResult], Meta(description="empty without --apply")]
    left: Annotated[list[Reason], Meta(description="what `push retry` did not send without --permanent")] = []


class RejectedRow(Struct):
    """A row that was not sent or not taken; `cells` as they were given, by column."""

    push: int
    kind: str
    why: Reason
    cells: dict[str, str]


class RejectedRows(Struct):
    """`marketing-sync push rejected --json`."""

    rows: list[RejectedRow]


class PushLine(Struct):
    """One of the last pushes."""

    push: int
    begun_at: dt.datetime
    kind: str
    source: str
    rows: int
    sent: int
    rejected: int
    open: int
    mismatches: int


class Pushes(Struct):
    """`marketing-sync push status --json`."""

    pushes: list[PushLine]
    open: int


class Export(Struct):
    """The Parquet files that were asked for."""

    folder: str
    tables: int
    files: int
    bytes: int


class Publication(Struct):
    """`marketing-sync publish --json`."""

    published: Published
    report: str
    parquet: Export | None
    breaking: Annotated[list[str], Meta(description="what readers of the copy before can no longer count on")] = []


#: What stands in docs/json-output.md, in this order.
DOCUMENTS: tuple[type[Struct], ...] = (Status, Fleet, Findings, Plan, Push, Pushes, RejectedRows, Publication)


def emit(document: Struct) -> None:
    """Print it."""
    print(msgspec.json.format(msgspec.json.encode(document), indent=2).decode())
