"""The `sync` tables: what was requested, loaded, refused and is known to be read. Declarations only.

Not here: who fills them (`requests`, `coverage`, `contact_coverage`, `load`, `writebacks`), the data itself (`tables`).
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from warehouse.archive.row import COLUMNS
from warehouse.tables import ACCOUNT, Column


@dataclass(frozen=True, slots=True)
class SyncTable:
    """One `sync` table. `key` identifies a row (empty: rows repeat); an internal one is not published."""

    name: str
    key: tuple[str, ...]
    doc: str
    columns: tuple[Column, ...]
    is_internal: bool = False

    @property
    def qualified(self) -> str:
        return f"sync.{self.name}"


def _text(name: str, comment: str) -> Column:
    return Column(name, "VARCHAR", comment)


def _count(name: str, comment: str) -> Column:
    return Column(name, "BIGINT", comment)


def _at(name: str, comment: str) -> Column:
    return Column(name, "TIMESTAMPTZ", comment)


def _flag(name: str, comment: str) -> Column:
    return Column(name, "BOOLEAN", comment)


def _request(name: str) -> Column:
    comment = "The newest request it rests on (larger ids are later, whatever clocks showed); NULL: from before this was noted."
    return Column(name, "BIGINT", comment, is_internal=True)


_LAST_REQUEST = _request("last_request")
_TABLE_NAME = _text("table_name", "The `source` table.")
_SCOPE = _text("scope", "What was asked for: `all`, `column=value`, or `first day..last day`.")

_ARCHIVED = {pa.int64(): "BIGINT", pa.string(): "VARCHAR", pa.timestamp("us", "UTC"): "TIMESTAMPTZ"}
#: Parameters name people, and the service's words about an error may.
_PERSONAL = {"params", "error"}
#: Where and how bodies are archived. Their hashes have no key: whoever knows an address could find out that it was requested.
_INTERNAL = {"question_key", "body_sha256", "content_sha256", "body_file", "body_ref"}

REQUESTS = SyncTable(
    "requests",
    ("request_id",),
    "Every request that was sent, with what came back: the archive without its bodies.",
    tuple(
        Column(column.name, _ARCHIVED[column.type], column.doc, column.name in _PERSONAL, column.name in _INTERNAL) for column in COLUMNS
    ),
)

ARCHIVE_FILES = SyncTable(
    "archive_files",
    ("archive_file",),
    "Archive files whose requests are in sync.requests; a file's row commits together with its requests.",
    (_text("archive_file", "Name of the file below the archive."), _count("request_count", "Requests it holds.")),
    is_internal=True,
)

RUNS = SyncTable(
    "runs",
    ("run_id",),
    "Runs of the program, one row each.",
    (
        _text("run_id", "Number of the run, as the UI shows it; `marketing-sync publish` has one of its own."),
        _text("job", "Name of the job."),
        _at("started_at", "When it began to read; of a run that reads nothing, to publish."),
        _at("ended_at", "When its reading, or else its publishing, ended; NULL while it runs, as it does when it writes a published copy."),
        _text("outcome", "done, partial or failed; publishing of the run that wrote this copy, or that died while it wrote one."),
        _count("request_count", "Requests it sent; in the copy that it wrote itself, up to then."),
        Column("waited_s", "DOUBLE", "Seconds its requests waited under the rate limit."),
        Column("message", "VARCHAR", "What could not be had, in words.", is_personal=True),  # may quote the service
    ),
)

COVERAGE = SyncTable(
    "coverage",
    ("account", "table_name", "scope"),
    "How far each `source` table is read: one row per table and scope.",
    (
        ACCOUNT,
        _TABLE_NAME,
        _SCOPE,
        _at("as_of", "When the newest loaded answer was asked, or found that nothing was due to be asked."),
        _LAST_REQUEST,
        _at("due_at", "When it should be read again; NULL when nobody said."),
        _flag("is_complete", "Whether the whole scope was read and applied."),
        _count("rows", "Rows that the scope has after the load (of a range: that the answers had)."),
        _count("service_count", "The service's own count of the scope; NULL when it tells none."),
        _text("reason", "Why it is not complete, or what else should be known."),
    ),
)

READINGS = SyncTable(
    "readings",
    ("account", "table_name", "scope", "as_of"),
    "When each listing that is read scope by scope (the contacts of a list) was read: every reading that `coverage` has the newest of.",
    (
        ACCOUNT,
        _TABLE_NAME,
        _SCOPE,
        _at("as_of", "When its newest answer was requested."),
        _text("timezone", "The account's time zone then: the day of a reading stays what it was when the account moves."),
        _flag("is_complete", "Whether the whole scope was read and applied."),
    ),
)

CONTACT_COVERAGE = SyncTable(
    "contact_coverage",
    ("account", "contact_id"),
    "When each contact's timeline and coupons were last asked and what came, one row per contact that was ever asked.",
    (
        ACCOUNT,
        _count("contact_id", "The contact."),
        Column("email", "VARCHAR", "Its address when it was last asked.", is_personal=True),
        _at("timeline_first_asked_at", "When its timeline was first asked."),
        _at("timeline_asked_at", "When its timeline was last asked."),
        _request("timeline_request"),
        _at("timeline_changed_at", "When its timeline was last asked and had something new."),
        _count("timeline_times_asked", "How often its timeline was asked."),
        _count("timeline_times_changed", "How often its timeline had something new (the first time included)."),
        _count("timeline_served", "Timeline entries the last answer had."),
        _count("timeline_total", "Timeline entries the service says there are; more than were served: it cut the timeline."),
        Column(
            "timeline_digest",
            "VARCHAR",
            "Hash of what was loaded last, and of how it was read: an answer with the same need not be read. NULL: the next one must be.",
            is_internal=True,
        ),
        _at("coupon_first_asked_at", "When its address was first asked for coupons."),
        _at("coupon_asked_at", "When its address was last asked for coupons."),
        _request("coupon_request"),
        _at("coupon_changed_at", "When its address was last asked and its coupons had changed."),
        _count("coupon_times_asked", "How often its address was asked for coupons."),
        _count("coupon_times_changed", "How often its coupons had changed (the first time included)."),
        _count("coupon_count", "Coupons the last answer had."),
    ),
)

PLANS = SyncTable(
    "plans",
    ("run_id", "account", "question", "reason"),
    "What each run planned to ask about single contacts and campaigns, why, and what came of it: one row per reason.",
    (
        _text("run_id", "The run, as in sync.runs."),
        ACCOUNT,
        _at("planned_at", "When the plan was made."),
        _text("question", "timelines, coupons or campaign_stats."),
        _text("reason", "Why these were asked: new, due, what was noticed (row, clicked, …), probable, turn, explore."),
        _count("planned_count", "Questions planned for this reason."),
        _count("asked_count", "Of these, how many were answered and loaded."),
        _count("changed_count", "Of these, how many had something new."),
        Column("expected_count", "DOUBLE", "Of the answered, how many were expected to have something new without that reason."),
    ),
)

REJECTED_RECORDS = SyncTable(
    "rejected_records",
    (),
    "Entries that could not be read, as they came. Reading the same scope again replaces its rows.",
    (
        ACCOUNT,
        _TABLE_NAME,
        _SCOPE,
        _count("request_id", "The request whose answer held the entry."),
        _at("requested_at", "When that was asked."),
        _text("reason", "Why it could not be read."),
        Column("raw", "JSON", "The entry as it came.", is_personal=True),
    ),
)

UNKNOWN_FIELDS = SyncTable(
    "unknown_fields",
    ("account", "table_name", "field"),
    "Fields that the service sends and no column holds (their values are in `extra`), by when they first came.",
    (ACCOUNT, _TABLE_NAME, _text("field", "Name of the field."), _at("first_seen_at", "When an answer first had it.")),
)

LOADS = SyncTable(
    "loads",
    ("load_id",),
    "Loads that were applied, in order: each is one transaction over one or more `source` tables.",
    (
        _text("load_id", "Hash of what was loaded; the same load is applied once."),
        _at("logged_at", "When the load was written to the load log."),
        ACCOUNT,
        _text("asset", "What asked for the data."),
        Column("tables", "VARCHAR[]", "The `source` tables it fills."),
        Column("scope", "JSON", "What was asked for."),
        _count("request_count", "Answers it is made of."),
        _at("as_of", "When the newest of its answers was asked."),
        _LAST_REQUEST,
        _text("outcome", "applied, or failed (its answers could not be read; a rebuild tries again)."),
        Column("error", "VARCHAR", "What failed.", is_personal=True),  # may quote what could not be read
        _count("new_count", "Rows added."),
        _count("changed_count", "Rows changed."),
        _count("deleted_count", "Rows marked as deleted."),
        _count("rejected_count", "Entries that could not be read."),
        Column("event", "VARCHAR", "The load as the load log has it (JSON): a damaged log is written anew from here.", is_internal=True),
    ),
)

WRITEBACKS = SyncTable(
    "writebacks",
    ("outbox_begun_at", "item_id"),
    "What was sent back to the service, or was to be: one row per request, and one per input row that made none. A copy of the outbox.",
    (
        ACCOUNT,
        _at("outbox_begun_at", "When the outbox was begun that numbers pushes and items."),
        _count("push_id", "Number of the push, as `marketing-sync push status` shows it."),
        _count("item_id", "Number of the request, in order of sending."),
        _text("kind", "contacts, tags, activities, moves or deletions."),
        _text("source", "Name of the file, or `query`."),
        Column("row_numbers", "BIGINT[]", "The input rows it stands for; the first below the header is 2."),
        Column("email", "VARCHAR", "The address it is about; NULL when the row named a contact only.", is_personal=True),
        _count("contact_id", "The contact it is about; NULL when the row named an address only and none was looked up."),
        _text("operation", "area/operation, as in its path; NULL for an input row that made no request."),
        Column("params", "JSON", "The wire parameters, without the key.", is_personal=True),
        _text("state", "planned, sending, applied, verified, rejected, unknown or skipped."),
        Column("message", "VARCHAR", "Why, in words: ours or the service's, without addresses.", is_personal=True),
        _text("rejected_by", "check (before anything was sent) or service; NULL unless it is rejected."),
        _count("attempts", "How often it was sent."),
        _at("planned_at", "When it was taken into the outbox."),
        _at("sent_at", "When it was last sent."),
        _at("done_at", "When the service took or rejected it."),
        _at("verified_at", "When it was read back and was as intended."),
        Column("drift", "JSON", "Mismatches on read-back, `{field: [intended, found]}`; {} when all was as intended.", is_personal=True),
        _count("request_id", "The request with the last answer (sync.requests)."),
        _text("run", "The run that took it into the outbox (sync.runs)."),
        Column("revision", "BIGINT", "Number of the last change that this row shows.", is_internal=True),
    ),
)

#: Every `sync` table.
SYNC_TABLES = (
    REQUESTS,
    ARCHIVE_FILES,
    RUNS,
    COVERAGE,
    READINGS,
    CONTACT_COVERAGE,
    PLANS,
    REJECTED_RECORDS,
    UNKNOWN_FIELDS,
    LOADS,
    WRITEBACKS,
)

#: Those that a rebuild cannot make anew from the archive.
KEPT = (RUNS, PLANS, WRITEBACKS)
