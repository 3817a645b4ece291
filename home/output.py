"""What commands print with `--json`: one document each, of which docs/json-output.md and its schema
are made, with the texts below each structure and field.

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
    """when the part that was read longest ago was read"""
    newest: Moment
    """when it was read last"""
    due: Moment
    """when it is to be read again"""
    parts: int
    """lists, days or contacts that are read one by one"""
    incomplete: int
    """of them, not whole"""


class Contacts(Struct):
    """How many of an account's contacts have been read one by one."""

    account: str
    contacts: int
    timelines: int
    coupons: int
    oldest: Moment
    cut: int
    """timelines that the service cut"""


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
    """How the service's responses, or the published file, differed from what they were before."""

    account: str | None
    """null: the published file, which holds all of them"""
    noticed_at: dt.datetime
    table: str
    field: str | None
    change: str
    before: str | None
    after: str | None
    sample: str | None
    """what the value is like, never the value"""


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


class Account(Struct):
    """An account that is configured, or that the home knows."""

    account: str
    url: str
    business: str
    """as the home knows it; empty: nothing was read yet"""
    read_at: Moment
    """when a part of it was read completely last"""
    incomplete: int
    """lists, days or contacts whose last reading was not complete"""


class Status(Struct):
    """`marketing-sync status --json`."""

    accounts: list[Account] = []
    tables: list[Table] = []
    contacts: list[Contacts] = []
    plans: list[LastPlan] = []
    runs: list[Run] = []
    rejected: list[Rejected] = []
    schema_changes: list[SchemaChange] = []
    """the last ones, the newest first"""
    published: Published | None = None
    home: list[Part] = []
    """what takes room, the largest first"""
    holds: str = ""
    """live or sandbox, and the business behind each account name"""
    notices: list[str] = []
    """what a person should know first; empty while all is well"""


class ListedTable(Struct):
    """A table or view that can be queried."""

    table: str
    rows: int
    comment: str | None


class Tables(Struct):
    """`marketing-sync tables --json`."""

    tables: list[ListedTable]


class Column(Struct):
    """A column, as DuckDB has it."""

    name: str
    type: str
    comment: str | None


class TableColumns(Struct):
    """`marketing-sync tables TABLE --json`."""

    table: str
    comment: str | None
    columns: list[Column]


class Finding(Struct):
    """One look: `text` says what to do where it is not well."""

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
    """contacts or campaigns that there are"""
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
    """the same as on a terminal"""


class Plan(Struct):
    """`marketing-sync sync --dry-run --json`; no account before the first sync."""

    accounts: list[AccountPlan]


class Reason(Struct):
    """Why rows of the input were not sent or not taken; rows are counted as in the file."""

    rows: list[int]
    reason: str
    by_service: bool
    """false: our own checks rejected them"""
    is_permanent: bool | None = None
    """the same request is refused again; null: not known"""
    remedy: str | None = None
    """what to do; null: not known"""


class Change(Struct):
    """One value that would change."""

    row: int
    contact: str
    """address or id"""
    column: str
    old: str | None
    new: str | None


class ValueSample(Struct):
    """A value of the input, and what it becomes."""

    row: int
    before: str
    after: str | None
    """null: it is invalid"""


class InputColumn(Struct):
    """What a column of the input was taken for."""

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
    """ours, and the input's that was mapped to it or guessed to mean it"""
    unknown_addresses: int
    """that the warehouse does not know"""
    notes: list[str]
    requests: int
    seconds: float
    refusal: str | None
    """why nothing is sent however it is asked for"""
    plan_id: str = ""
    """what `--if-plan` takes"""
    input_columns: list[InputColumn] = []


class PushResult(Struct):
    """What became of a push."""

    push: int
    account: str
    kind: str
    source: str
    rows: dict[str, int]
    """of the input, by state"""
    requests: dict[str, int]
    """by state"""
    reasons: list[Reason]
    """what was not taken, equal reasons together, the most frequent first"""
    waiting: list[Reason]
    mismatches: dict[str, int]
    """requests that read back otherwise than they were sent, by field"""
    open: int
    """requests that are left"""
    shortfall: int
    """rows that are not done: rejected, open, or with a mismatch on read-back"""
    requests_sent: int | None
    stopped: str | None
    rejected_csv: str | None
    left_unsubscribed: list[Reason] = []
    """rows that would have subscribed somebody again, by reason"""
    row_count: int = 0
    """rows of the input"""
    drifted: int = 0
    """requests that read back otherwise than they were sent"""
    mismatched_rows: int = 0
    """rows that read back otherwise than they were sent; their state is applied"""
    unverified: str | None = None
    """why rows that were sent are not verified; null: all are"""
    writebacks_follow: str | None = None
    """why sync.writebacks could not be brought up to date yet; null: it is"""


class Push(Struct):
    """`marketing-sync push KIND --json`, `push retry --json` and `push status N --json`."""

    plan: PushPlan | None
    results: list[PushResult]
    """empty without --apply"""
    left: list[Reason] = []
    """what `push retry` did not send without --permanent"""


class RejectedRow(Struct):
    """A row that was not sent or not taken; `cells` as they were given, by column."""

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
    """where `--to` put the file"""
    problems: list[str] = []
    """custom tables that failed"""


class SyncTable(Struct):
    """What a sync did to one table. Counts are of rows, all accounts together."""

    table: str
    rows: int
    new: int
    changed: int
    deleted: int
    rejected: int
    """records that could not be read"""
    share_read: float | None
    """how much came of what was requested, 0 to 1; null: nothing was requested"""


class SyncAccount(Struct):
    """What reading one account cost."""

    account: str
    requests: int
    waited_s: float
    """seconds that requests waited for the limit, together"""
    limit: float
    """requests a second, as the service tells"""
    failures: dict[str, int]
    """requests without a usable response, by what came instead"""


class Built(Struct):
    """Models that were built, and tests that passed."""

    models: int
    tests: int
    unchanged: int
    """not run again, since nothing they read changed"""
    warnings: list[str]
    problems: list[str]


class SyncResult(Struct):
    """`marketing-sync sync --json`: all that a sync came to."""

    seconds: float
    accounts: list[SyncAccount]
    tables: list[SyncTable]
    read: list[str]
    """which days were read, what the crawl plan left out, what was read since others needed it"""
    not_read: list[str]
    """what is missing, and why; empty when everything requested was read"""
    schema_changes: list[str]
    notices: list[str]
    """what to know although everything came: wrong clocks, values that could not be read"""
    models: Built | None
    """null: none were built"""
    is_published: bool
    """whether this run published a copy"""
    published: str
    """the copy that analysts have"""
    mail: str
    """what became of the report's mail; empty: none was due"""
    activations: list[str]
    """what went back to the service"""
    problems: list[str]
    """what went wrong after the reads: failed steps with their reasons, failed custom tables"""


#: What stands in docs/json-output.md, in this order.
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
