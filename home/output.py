"""What commands print with `--json`: one document each, of which docs/json-output.md and its schema are made,
with texts of `output.toml`.

A field is never renamed or removed, nor does it change its type; new ones may be added. Times are ISO 8601 in
UTC."""

import datetime as dt

import msgspec
from msgspec import Struct

Moment = dt.datetime | None


class Table(Struct):
    account: str
    table: str
    rows: int
    oldest: Moment
    newest: Moment
    due: Moment
    parts: int
    incomplete: int


class Contacts(Struct):
    account: str
    contacts: int
    timelines: int
    coupons: int
    oldest: Moment
    cut: int


class LastPlan(Struct):
    account: str
    question: str
    planned_at: dt.datetime
    planned: int
    asked: int
    changed: int
    why: str


class Run(Struct):
    started_at: dt.datetime
    ended_at: Moment
    job: str
    outcome: str | None
    request_count: int
    waited_s: float | None
    message: str | None


class Rejected(Struct):
    account: str
    table: str
    reason: str
    records: int


class SchemaChange(Struct):
    account: str | None
    noticed_at: dt.datetime
    table: str
    field: str | None
    change: str
    before: str | None
    after: str | None
    sample: str | None


class Published(Struct):
    file: str
    published_at: dt.datetime
    data_as_of: Moment
    personal_data: str
    tables: int
    rows: int


class Part(Struct):
    part: str
    bytes: int
    growth: int | None = None


class Status(Struct):
    tables: list[Table] = []
    contacts: list[Contacts] = []
    plans: list[LastPlan] = []
    runs: list[Run] = []
    rejected: list[Rejected] = []
    schema_changes: list[SchemaChange] = []
    published: Published | None = None
    home: list[Part] = []
    holds: str = ""
    notices: list[str] = []


class FleetAccount(Struct):
    account: str
    shard: str
    contacts: int
    contacts_7_days: int
    contacts_30_days: int
    events: int
    campaigns: int
    data_as_of: Moment
    published_at: dt.datetime
    age_hours: float | None
    failed_runs_7_days: int
    rejected_records: int
    incomplete_parts: int
    requests_last_night: int
    requests_30_days: int


class Fleet(Struct):
    accounts: list[FleetAccount]
    notices: list[str]


class Finding(Struct):
    what: str
    is_well: bool
    text: str


class Findings(Struct):
    is_well: bool
    findings: list[Finding]


class Planned(Struct):
    what: str
    requests: int
    left_out: int
    of: int | None
    why: dict[str, int]


class AccountPlan(Struct):
    account: str
    requests: int
    seconds: float
    rate: float
    planned: list[Planned]
    sentences: list[str]


class Plan(Struct):
    accounts: list[AccountPlan]


class Reason(Struct):
    rows: list[int]
    reason: str
    by_service: bool
    is_permanent: bool | None = None
    remedy: str | None = None


class Change(Struct):
    row: int
    contact: str
    column: str
    old: str | None
    new: str | None


class PushPlan(Struct):
    account: str
    kind: str
    source: str
    rows: int
    new: int
    changed: int
    idle: dict[str, int]
    invalid: list[Reason]
    changes: list[Change]
    additions: list[Change]
    columns: dict[str, str]
    unknown_addresses: int
    notes: list[str]
    requests: int
    seconds: float
    refusal: str | None


class PushResult(Struct):
    push: int
    account: str
    kind: str
    source: str
    rows: dict[str, int]
    requests: dict[str, int]
    reasons: list[Reason]
    waiting: list[Reason]
    mismatches: dict[str, int]
    open: int
    shortfall: int
    requests_sent: int | None
    stopped: str | None
    rejected_csv: str | None
    left_unsubscribed: list[Reason] = []
    row_count: int = 0
    drifted: int = 0
    writebacks_follow: str | None = None


class Push(Struct):
    plan: PushPlan | None
    results: list[PushResult]
    left: list[Reason] = []


class RejectedRow(Struct):
    push: int
    kind: str
    why: Reason
    cells: dict[str, str]


class RejectedRows(Struct):
    rows: list[RejectedRow]


class PushLine(Struct):
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
    pushes: list[PushLine]
    open: int


class Export(Struct):
    folder: str
    tables: int
    files: int
    bytes: int


class Publication(Struct):
    published: Published
    report: str
    parquet: Export | None
    breaking: list[str] = []


class SyncTable(Struct):
    table: str
    rows: int
    new: int
    changed: int
    deleted: int
    rejected: int
    share_read: float | None


class SyncAccount(Struct):
    account: str
    requests: int
    waited_s: float
    limit: float
    failures: dict[str, int]


class Built(Struct):
    models: int
    tests: int
    unchanged: int
    warnings: list[str]
    problems: list[str]


class SyncResult(Struct):
    seconds: float
    accounts: list[SyncAccount]
    tables: list[SyncTable]
    read: list[str]
    not_read: list[str]
    schema_changes: list[str]
    notices: list[str]
    models: Built | None
    own_models: Built | None
    is_published: bool
    published: str
    mail: str
    activations: list[str]
    problems: list[str]


#: What stands in docs/json-output.md, in this order.
DOCUMENTS: tuple[type[Struct], ...] = (
    Status,
    Fleet,
    Findings,
    Plan,
    Push,
    Pushes,
    RejectedRows,
    Publication,
    SyncResult,
)


def emit(document: Struct) -> None:
    """Print it."""
    print(msgspec.json.format(msgspec.json.encode(document), indent=2).decode())
