"""Every declared table. For `source`: which record fills it, what identifies a row, and how it is
loaded. And the tables of `sync`.

Columns of `source` follow from the records (`marketing_api.records`), `sync` tables are in
`sync_tables.toml`. Not here: what the load modes do (`loads/`), what fills the `sync` tables
(`bookkeeping`, `loads.coverage`, `loads.load`)."""

import datetime as dt
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cached_property
from pathlib import Path
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from marketing_api.operation import Operation
from marketing_api.records import (
    account,
    campaigns,
    contacts,
    goals,
    lists,
    reputation,
    social,
    users,
    webhooks,
)
from marketing_api.records.fields import Record, is_link, is_personal
from warehouse.archive.row import Row


@dataclass(frozen=True, slots=True)
class Column:
    """One column: its DuckDB type and its COMMENT; whether it holds personal data or links; whether
    only loading needs it, so that it is not published."""

    name: str
    sql_type: str
    comment: str
    is_personal: bool = False
    is_internal: bool = False
    is_link: bool = False


_SQL_TYPES: dict[type, str] = {
    bool: "BOOLEAN",
    int: "BIGINT",
    str: "VARCHAR",
    dt.datetime: "TIMESTAMPTZ",
    dt.date: "DATE",
    Decimal: "DECIMAL(18,4)",
    float: "DOUBLE",
}


def sql_type(annotation: Any) -> str:
    """The DuckDB type of a record's field; TypeError for annotations that have none."""
    if get_origin(annotation) in (Union, UnionType):
        words = {sql_type(part) for part in get_args(annotation) if part is not type(None)}
        if len(words) == 1:
            return words.pop()
    if get_origin(annotation) is Literal:
        return "VARCHAR"
    if get_origin(annotation) is list and get_args(annotation) == (str,):
        return "VARCHAR[]"
    if get_origin(annotation) in (dict, list):
        return "JSON"
    for base, word in _SQL_TYPES.items():  # in this order: a bool is an int, a datetime is a date
        if isinstance(annotation, type) and issubclass(annotation, base):
            return word
    raise TypeError(f"no column type for {annotation!r}")


#: A column named `email` is the address of a person. The next column has its normal form, which
#: joins tables.
EMAIL = "email"
EMAIL_NORMALIZED = "email_normalized"
_SAYS = "E-mail address in normal form, to join tables by; NULL without one."


def _with_normal_forms(columns: Iterable[Column]) -> Iterator[Column]:
    for column in columns:
        yield column
        if column.name == EMAIL:
            yield Column(EMAIL_NORMALIZED, "VARCHAR", _SAYS, is_personal=True)


@dataclass(frozen=True, kw_only=True)
class _LoadMode:
    """The declarations of the modes below; each uses what it needs."""

    scope: Mapping[str, str] = field(default_factory=dict)
    is_whole: bool = False
    listing: Operation | None = None
    detail: Operation | None = None
    within: str = ""
    per_address: bool = False
    column: str = ""
    contact_parameter: str = ""


class Snapshot(_LoadMode):
    """A complete listing of a scope: missing rows are marked as deleted after the scope was read
    completely.

    `scope` maps the columns that name the scope to the wire parameters of the request; empty: the
    scope is the account. `is_whole`: each response is all of its scope, the parts of one entry (its
    fields, its clickers), and a few of them may always disappear. Otherwise the load's
    `is_complete` says whether all pages came, and a listing that shrinks too much is refused.
    `listing`: the operation that proves which rows exist; None: all do. `detail`: the operation
    that is requested for each new or changed row. `within`: the table whose deleted rows delete the
    rows here, too (they share the columns of its key). `per_address`: each response is about one
    address and is noted in `sync.contact_coverage`; rows are deleted with the last contact of their
    address."""


class Window(_LoadMode):
    """A range of days, `from_on` to `to_on` of the load's scope, by `column` (its day in the
    account's zone).

    Rows of the range that are missing from a complete response are marked as deleted. Without a
    column the row itself is about the range: it is replaced by key, and nothing is deleted."""


class Accumulate(_LoadMode):
    """Rows are added and updated, never removed: the service shows only part of them.

    The last column of the key is `identity-occurrence` (`records.shapes.add_keys`).
    `contact_parameter`: the wire parameter that names the contact whose rows a response holds: all
    that the service shows of them. Each response is noted in `sync.contact_coverage`."""


class Daily(_LoadMode):
    """One row per key, which ends in `observed_on`: the account's local date of the request."""


LoadKind = Snapshot | Window | Accumulate | Daily

_FIRST_SEEN = Column("_first_seen_at", "TIMESTAMPTZ", "When a response first had this row.")
_CHANGED = Column(
    "_changed_at",
    "TIMESTAMPTZ",
    "When a response last added, changed, removed or restored this row.",
)
_DELETED = Column(
    "_deleted_at",
    "TIMESTAMPTZ",
    "When a complete listing no longer had this row; NULL while it exists.",
)
_LISTING_HASH = Column(
    "_listing_hash",
    "VARCHAR",
    "Hash of the listing's entry when its detail was last read.",
    is_internal=True,
)
ACCOUNT = Column("account", "VARCHAR", "Name of the account in the configuration.")
EXTRA = Column(
    "extra", "JSON", "Fields in the response that have no column of their own.", is_personal=True
)  # unknown fields may name people


@dataclass(frozen=True)
class Table:
    """One `source` table. `key`: the columns that identify a row within its account (empty: one row
    per account). `has_history`: the `history` schema keeps every version of its rows, because the
    service can't return earlier ones."""

    name: str
    record: type[Record]
    key: tuple[str, ...]
    load: LoadKind
    has_history: bool = False

    def __hash__(self) -> int:
        return hash(self.name)

    @property
    def area(self) -> str:
        """The part of the service that it belongs to."""
        return self.record.__module__.rpartition(".")[2]

    @property
    def doc(self) -> str:
        return (self.record.__doc__ or "").strip()

    @property
    def qualified(self) -> str:
        return f"source.{self.name}"

    @property
    def is_composed(self) -> bool:
        """Whether several operations contribute to one row."""
        return self.load.listing is not None

    @property
    def is_partial(self) -> bool:
        """Whether a column that a response lacks keeps its value instead of becoming empty."""
        return self.is_composed or isinstance(self.load, Accumulate)

    @cached_property
    def record_columns(self) -> tuple[Column, ...]:
        fields = self.record.model_fields.items()
        columns = (
            Column(
                name,
                sql_type(info.annotation),
                info.description or "",
                is_personal(info),
                is_link=is_link(info),
            )
            for name, info in fields
        )
        return tuple(_with_normal_forms(columns))

    @property
    def marks_deleted(self) -> bool:
        """Whether responses prove that rows are gone, which are then marked."""
        return isinstance(self.load, Snapshot) or bool(self.load.column)

    @property
    def is_there(self) -> str:
        """The SQL condition for rows that are not marked as deleted."""
        return "_deleted_at is null" if self.marks_deleted else "true"

    @cached_property
    def system_columns(self) -> tuple[Column, ...]:
        """The columns that loading fills."""
        return (
            _FIRST_SEEN,
            _CHANGED,
            *((_DELETED,) if self.marks_deleted else ()),
            *((_LISTING_HASH,) if self.load.detail else ()),
        )

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        return (ACCOUNT, *self.record_columns, EXTRA, *self.system_columns)

    @cached_property
    def values(self) -> tuple[Column, ...]:
        return tuple(column for column in self.record_columns if column.name not in self.key)

    def find_column(self, name: str) -> Column:
        return next(column for column in self.columns if column.name == name)


_WHOLE = Snapshot()
#: Every table by name, in the order of declaration.
TABLES: dict[str, Table] = {}


def _declare_table(
    name: str,
    record: type[Record],
    *key: str,
    load: LoadKind = _WHOLE,
    has_history: bool = False,
) -> Table:
    """By default, the key is the required fields of the record, and the rows are a listing of the
    account."""
    required = (name for name, info in record.model_fields.items() if info.is_required())
    table = TABLES[name] = Table(name, record, key or tuple(required), load, has_history)
    return table


BUSINESS = _declare_table("business", account.Business)

DIRECT_REVIEWS = _declare_table(
    "direct_reviews", reputation.DirectReview, load=Window(column="reviewed_at")
)
ONLINE_REVIEWS = _declare_table(
    "online_reviews", reputation.OnlineReview, "review_key", load=Accumulate()
)
ONLINE_REVIEW_CHANNELS = _declare_table(
    "online_review_channels", reputation.OnlineReviewChannel, load=Daily()
)
SENTIMENT_MENTIONS = _declare_table(
    "sentiment_mentions",
    reputation.SentimentMention,
    "mention_key",
    load=Window(column="reviewed_on"),
)
SENTIMENT_TOTALS = _declare_table("sentiment_totals", reputation.SentimentTotals, load=Window())
REVIEW_STATS = _declare_table(
    "review_stats", reputation.ReviewStats, load=Window(column="period_on")
)
SOCIAL_MEDIA_STATS = _declare_table(
    "social_media_stats", reputation.SocialMediaStats, load=Window(column="period_on")
)
FEEDBACK_VIEWS = _declare_table(
    "feedback_views", reputation.FeedbackViews, load=Window(column="period_on")
)

SOCIAL_PROFILES = _declare_table("social_profiles", social.SocialProfile)
SOCIAL_POSTS = _declare_table("social_posts", social.SocialPost, load=Window(column="scheduled_at"))
SOCIAL_POST_DETAILS = _declare_table(
    "social_post_details",
    social.SocialPostDetail,
    load=Snapshot(
        scope={"post_id": "id", "network": "channel"},
        is_whole=True,
        detail=social.GETPOST,
        within="social_posts",
    ),
)
SOCIAL_LINKS = _declare_table("social_links", social.SocialLink)
SOCIAL_LINK_CLICKS = _declare_table("social_link_clicks", social.SocialLinkClicks, load=Daily())

CAMPAIGNS = _declare_table(
    "campaigns",
    campaigns.Campaign,
    load=Snapshot(listing=campaigns.CAMPAIGNS, detail=campaigns.GETCAMPAIGN),
    has_history=True,
)
CAMPAIGN_STATS = _declare_table("campaign_stats", campaigns.CampaignStats, load=Daily())
CAMPAIGN_LINKS = _declare_table("campaign_links", campaigns.CampaignLink, load=Daily())
CAMPAIGN_CLICKERS = _declare_table(
    "campaign_clickers",
    campaigns.CampaignClicker,
    load=Snapshot(scope={"campaign_id": "id"}, is_whole=True, within="campaigns"),
)

LISTS = _declare_table(
    "lists",
    lists.ContactList,
    load=Snapshot(listing=lists.GETLISTS, detail=lists.GETLIST),
    has_history=True,
)
LIST_FIELDS = _declare_table(
    "list_fields",
    lists.ListField,
    load=Snapshot(scope={"list_id": "id"}, is_whole=True, within="lists"),
)
AUDIENCES = _declare_table("audiences", lists.Audience)

CONTACTS = _declare_table(
    "contacts",
    contacts.Contact,
    load=Snapshot(scope={"list_id": "listid"}, within="lists"),
    has_history=True,
)
_TIMELINE = Accumulate(contact_parameter="id")
TIMELINE_EVENTS = _declare_table("timeline_events", contacts.TimelineEvent, load=_TIMELINE)
TIMELINE_VISITS = _declare_table("timeline_visits", contacts.TimelineVisit, load=_TIMELINE)
TIMELINE_AUTOMATIONS = _declare_table(
    "timeline_automations", contacts.TimelineAutomation, load=_TIMELINE
)
COUPONS = _declare_table(
    "coupons",
    contacts.Coupon,
    load=Snapshot(scope={"email": "email"}, is_whole=True, per_address=True),
)

USERS = _declare_table("users", users.User, has_history=True)
MANAGERS = _declare_table("managers", users.Manager)
USER_GROUPS = _declare_table("user_groups", users.UserGroup)

GOALS = _declare_table(
    "goals",
    goals.Goal,
    load=Snapshot(listing=goals.LISTS, detail=goals.SHOW),
    has_history=True,
)
WEBHOOKS = _declare_table(
    "webhooks",
    webhooks.Webhook,
    load=Snapshot(listing=webhooks.LISTS, detail=webhooks.SHOW),
    has_history=True,
)


# ---- what is known about the reading and the sending


@dataclass(frozen=True, slots=True)
class SyncTable:
    """One `sync` table. `key` identifies a row (empty: rows may repeat). An internal one is not
    published; a rebuild copies one that is kept."""

    name: str
    doc: str
    columns: tuple[Column, ...]
    key: tuple[str, ...] = ()
    is_internal: bool = False
    is_kept: bool = False

    @property
    def qualified(self) -> str:
        return f"sync.{self.name}"


def _archived_columns() -> Iterator[Column]:
    for name, hint in get_type_hints(Row, include_extras=True).items():
        annotation, meta = get_args(hint)
        yield Column(name, sql_type(annotation), meta.description, **meta.extra)


REQUESTS = SyncTable(
    "requests",
    "Every request that was sent, and its outcome. The response bodies are only in the archive.",
    tuple(_archived_columns()),
    key=("request_id",),
)


def _declare_sync_table(name: str, columns: Mapping[str, list[str]], **members: Any) -> SyncTable:
    made = (
        Column(column, row[0], row[1], "personal" in row, "internal" in row)
        for column, row in columns.items()
    )
    fields: dict[str, Any] = {
        field: tuple(value) if isinstance(value, list) else value
        for field, value in members.items()
    }
    return SyncTable(name, columns=tuple(_with_normal_forms(made)), **fields)


_TOML = tomllib.loads(Path(__file__).with_name("sync_tables.toml").read_text(encoding="utf-8"))
_BY_NAME = {name: _declare_sync_table(name, **table) for name, table in _TOML.items()}
#: Tables that only a published copy has: what it says about itself, what its marts answer, and the
#: user's tables.
TABLES_OF_COPY = tuple(map(_BY_NAME.pop, ("published", "questions", "custom_tables")))
FACTS, QUESTIONS, CUSTOM_TABLES = TABLES_OF_COPY
#: Every `sync` table.
SYNC_TABLES = (REQUESTS, *_BY_NAME.values())
#: Every declared table. The model build derives others from these.
ALL_TABLES: tuple[Table | SyncTable, ...] = (*TABLES.values(), *SYNC_TABLES)

(
    ARCHIVE_FILES,
    COVERAGE,
    READINGS,
    CONTACT_COVERAGE,
    REJECTED_RECORDS,
    WRITEBACKS,
    SCHEMA_CHANGES,
) = (
    _BY_NAME[name]
    for name in (
        "archive_files",
        "coverage",
        "readings",
        "contact_coverage",
        "rejected_records",
        "writebacks",
        "schema_changes",
    )
)
#: SQL of a row of `sync.schema_changes` in words.
IN_WORDS = """concat_ws(' ', table_name || ':', change, field,
    '(' || if(after is null, coalesce(sample, before), concat_ws(' → ', before, after)) || ')')"""
