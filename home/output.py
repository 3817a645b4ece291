"""The document that each command prints with `--json`. docs/json-output.md and its schema are
generated from here, with the texts below each structure and field.

A field is never renamed or removed, nor does it change its type; new ones may be added. Times are
ISO 8601 in UTC."""

import datetime as dt

import msgspec
from msgspec import Struct

Moment = dt.datetime | None


class Table(Struct):
    """One table of one account."""

    account: str
    table: str
    rows: int
    oldest: Moment
    """when the oldest part was read"""
    newest: Moment
    """when the newest part was read"""
    due: Moment
    """when it is due"""
    parts: int
    """number of lists, days or contacts that are read separately"""
    incomplete: int
    """number of incomplete parts"""


class Contacts(Struct):
    """How many contacts of an account have a read timeline and coupons."""

    account: str
    contacts: int
    timelines: int
    coupons: int
    oldest: Moment
    cut: int
    """timelines that the service cut"""


class LastPlan(Struct):
    """Requests about single contacts in the last sync, and how many had something new."""

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
    outcome: str | None
    """null: it runs"""
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
    """A change of the service's responses, or of the published file."""

    account: str | None
    """null: the published file, which has all accounts"""
    noticed_at: dt.datetime
    table: str
    field: str | None
    change: str
    before: str | None
    after: str | None
    sample: str | None
    """form of the value, never the value"""


class Published(Struct):
    """The copy for analysts."""

    file: str
    published_at: dt.datetime
    data_as_of: Moment
    personal_data: str
    tables: int
    rows: int


class Part(Struct):
    """A file or folder of the home, without its extension."""

    part: str
    bytes: int


class Account(Struct):
    """An account that is configured, or has data in the home."""

    account: str
    url: str
    business: str
    """as recorded in the home; empty: nothing was read yet"""
    read_at: Moment
    """when a part of it was last read completely"""
    incomplete: int
    """lists, days or contacts whose last reading was incomplete"""


class Status(Struct):
    """`marketing-sync status --json`."""

    accounts: list[Account] = []
    tables: list[Table] = []
    contacts: list[Contacts] = []
    plans: list[LastPlan] = []
    runs: list[Run] = []
    rejected: list[Rejected] = []
    schema_changes: list[SchemaChange] = []
    """the newest first"""
    published: Published | None = None
    home: list[Part] = []
    """what uses the space, the largest first"""
    holds: str = ""
    """live or sandbox, and the business behind each account name"""
    notices: list[str] = []
    """what needs your attention; empty if all is well"""


class ListedTable(Struct):
    """A table or view that can be queried."""

    table: str
    rows: int
    comment: str | None


class Tables(Struct):
    """`marketing-sync tables --json`."""

    tables: list[ListedTable]


class Column(Struct):
    """A column of the table."""

    name: str
    type: str
    comment: str | None


class TableColumns(Struct):
    """`marketing-sync tables TABLE --json`."""

    table: str
    comment: str | None
    columns: list[Column]


class Finding(Struct):
    """One check. If `is_well` is false, `text` says what to do."""

    what: str
    is_well: bool
    text: str


class Findings(Struct):
    """`marketing-sync doctor --json`."""

    is_well: bool
    findings: list[Finding]


class Planned(Struct):
    """Requests of one kind."""

    what: str
    requests: int
    left_out: int
    of: int | None
    """number of contacts or campaigns"""
    why: dict[str, int]


class AccountPlan(Struct):
    """What the next sync would request of an account."""

    account: str
    requests: int
    seconds: float
    rate: float
    """requests a second"""
    planned: list[Planned]
    sentences: list[str]
    """as displayed on a terminal"""


class Plan(Struct):
    """`marketing-sync sync --dry-run --json`; no account before the first sync."""

    accounts: list[AccountPlan]


class Reason(Struct):
    """Why rows of the input were not sent, or rejected. Row numbers are those of the file."""

    rows: list[int]
    reason: str
    by_service: bool
    """false: rejected by our own checks"""
    is_permanent: bool | None = None
    """the service would refuse the same request again; null: unknown"""
    remedy: str | None = None
    """what to do; null: unknown"""


class Change(Struct):
    """One value that would change."""

    row: int
    contact: str
    """address or id"""
    column: str
    old: str | None
    new: str | None


class ValueSample(Struct):
    """A value of the input, and the value to send."""

    before: str
    after: str | None
    """null: the value is invalid"""


class InputColumn(Struct):
    """How a column of the input is used."""

    title: str
    taken_for: str | None
    """our column or a custom field; null: the column is left out"""
    samples: list[ValueSample] = []
    """at most three; values that change come first"""


class PushPlan(Struct):
    """What a push would do."""

    account: str
    kind: str
    source: str
    rows: int
    new: int
    changed: int
    idle: dict[str, int]
    """rows with nothing to send, by reason"""
    invalid: list[Reason]
    changes: list[Change]
    """a sample"""
    columns: dict[str, str]
    """our column, and the column of the input that was mapped to it or recognized"""
    unknown_addresses: int
    """addresses that are not in the warehouse"""
    notes: list[str]
    requests: int
    seconds: float
    refusal: str | None
    """why nothing would be sent, even with `--apply`"""
    plan_id: str = ""
    """the id for `--if-plan`"""
    input_columns: list[InputColumn] = []


class PushResult(Struct):
    """The outcome of a push."""

    push: int
    account: str
    kind: str
    source: str
    rows: dict[str, int]
    """of the input, by state"""
    requests: dict[str, int]
    """by state"""
    reasons: list[Reason]
    """rejected rows, grouped by reason, the most frequent first"""
    waiting: list[Reason]
    mismatches: dict[str, int]
    """requests with a mismatch on read-back, by field"""
    open: int
    """requests that are not finished"""
    shortfall: int
    """unfinished rows: rejected, open, or with a mismatch on read-back"""
    requests_sent: int | None
    stopped: str | None
    rejected_csv: str | None
    left_unsubscribed: list[Reason] = []
    """rows that would have resubscribed somebody, by reason"""
    row_count: int = 0
    """rows of the input"""
    drifted: int = 0
    """requests with a mismatch on read-back"""
    mismatched_rows: int = 0
    """rows with a mismatch on read-back; their state is applied"""
    unverified: str | None = None
    """why rows that were sent are not verified; null: all are"""
    writebacks_follow: str | None = None
    """why sync.writebacks is not up to date; null: it is"""


class Push(Struct):
    """`marketing-sync push KIND --json`, also `push revert`, `push retry` and `push status N`."""

    plan: PushPlan | None
    results: list[PushResult]
    """empty without --apply"""
    left: list[Reason] = []
    """what `push retry` did not send without --permanent"""


class RejectedRow(Struct):
    """A rejected row, with its input cells by column."""

    push: int
    kind: str
    why: Reason
    cells: dict[str, str]
    place: str = ""
    """where the row is in the input: line of a text file, sheet and row of a workbook"""


class RejectedRows(Struct):
    """`marketing-sync push status --rejected --json`."""

    rows: list[RejectedRow]


class PushLine(Struct):
    """One of the last pushes. Its rows are sent, skipped, rejected, open, or have a mismatch on
    read-back."""

    push: int
    begun_at: dt.datetime
    kind: str
    source: str
    rows: int
    sent: int
    rejected: int
    open: int
    mismatches: int
    skipped: int = 0


class Pushes(Struct):
    """`marketing-sync push status --json`."""

    pushes: list[PushLine]
    open: int


class Publication(Struct):
    """`marketing-sync publish --json`."""

    published: Published
    report: str
    uploaded: str | None
    """address of the upload with `--to`"""
    problems: list[str] = []
    """custom tables that failed"""


class SyncTable(Struct):
    """Result of a sync for one table: rows of all accounts."""

    table: str
    rows: int
    new: int
    changed: int
    deleted: int
    rejected: int
    """records that could not be read"""
    share_read: float | None
    """share of the requested data that was read, 0 to 1; null: nothing was requested"""


class SyncAccount(Struct):
    """Requests for one account."""

    account: str
    requests: int
    waited_s: float
    """seconds that its requests waited for the rate limit"""
    limit: float
    """requests a second, as reported by the service"""
    failures: dict[str, int]
    """requests without a usable response, by outcome"""


class Built(Struct):
    """Models that were built, and tests that passed."""

    models: int
    tests: int
    unchanged: int
    """not run again, because their inputs are unchanged"""
    warnings: list[str]
    problems: list[str]


class SyncResult(Struct):
    """`marketing-sync sync --json`."""

    seconds: float
    accounts: list[SyncAccount]
    tables: list[SyncTable]
    read: list[str]
    """days that were read, what the crawl plan left out, and prerequisites that were read"""
    not_read: list[str]
    """what is missing, and why; empty if everything requested was read"""
    schema_changes: list[str]
    notices: list[str]
    """remarks, such as wrong clocks or unreadable values"""
    models: Built | None
    """null: none were built"""
    is_published: bool
    """whether this run published a copy"""
    published: str
    """the current published copy"""
    mail: str
    """result of the report's mail; empty: none was due"""
    activations: list[str]
    """results of audience syncs"""
    problems: list[str]
    """failures after the reads: steps with their reasons, custom tables"""


#: The content of docs/json-output.md, in this order.
DOCUMENTS: tuple[type[Struct], ...] = (
    Status,
    Findings,
    Tables,
    TableColumns,
    Plan,
    Push,
    Pushes,
    RejectedRows,
    Publication,
    SyncResult,
)


def print_json(document: Struct) -> None:
    """Print it."""
    print(msgspec.json.format(msgspec.json.encode(document), indent=2).decode())
