"""The rows of the report, from the published file by the queries in `sql/`. Not here: figures
(`figures`), looks (`templates/`)."""

import datetime as dt
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import duckdb

from marketing_api.address import mask_addresses
from warehouse.errors import NothingPublished
from warehouse.policies import PersonalData
from warehouse.publish import Published, open_published, read_published_facts
from warehouse.sql import fetch_records, fetch_rows, quote_text

Row = Mapping[str, Any]
Rows = Sequence[Row]

#: Name → the query for the rows of one `$account`; the variables `today` and `zone` are its date
#: of today and its time zone.
QUERIES = {
    path.stem: path.read_text(encoding="utf-8")
    for path in sorted(Path(__file__).with_name("sql").glob("*.sql"))
}

#: Columns of these queries that are personal.
_PERSONAL = frozenset({"username", "email", "phone", "inquiry", "reason"})


@dataclass(frozen=True, slots=True)
class AccountData:
    """Everything that the report shows of one account, `made_at`; `today` is the account's date of
    its newest response."""

    name: str
    as_of: dt.datetime | None
    today: dt.date
    zone: str
    rows: Mapping[str, Rows]
    made_at: dt.datetime
    has_texts: bool = True
    is_namesake: bool = False

    @property
    def title(self) -> str:
        """The business's name, else the account's; both, where another account has the same
        business name."""
        names = (str(row["business_name"]) for row in self.rows["business"] if row["business_name"])
        title = next(names, self.name)
        return f"{title} ({self.name})" if self.is_namesake else title

    def is_read(self, subject: str, *parts: str) -> bool:
        """Whether the subject, and what there is of its parts, was read completely: only then an
        absence is known."""
        read = {row["subject"]: row["coverage_rate"] for row in self.rows["freshness"]}
        return read.get(subject) == 1 and all(read.get(part) in (1, None) for part in parts)


@dataclass(frozen=True, slots=True)
class ReportData:
    """Of the whole file. Without accounts nothing was ever read."""

    published: Published
    accounts: Sequence[AccountData]


def read_report(path: Path, now: dt.datetime) -> ReportData:
    """The report's data from the published file, as it is `now`; a model not in it has no rows.
    NothingPublished when there is none."""
    published = read_published_facts(path)
    if published is None:
        raise NothingPublished(path)
    with open_published(path) as connection:
        return report_of(connection, published, now)


#: By account, without what a clock that was ahead dated after the publishing.
_NEWEST = (
    "select account, coalesce(max(as_of) filter (as_of <= $1 + interval 5 minute), max(as_of)) "
    "from sync.coverage group by account order by account"
)


def report_of(
    connection: duckdb.DuckDBPyConnection, published: Published, now: dt.datetime
) -> ReportData:
    """The same from a connection whose time zone is UTC."""
    newest = fetch_rows(connection, _NEWEST, [published.published_at])
    accounts = [_read_account(connection, name, as_of, published, now) for name, as_of in newest]
    return ReportData(published, mark_namesakes(accounts))


def mark_namesakes(accounts: Sequence[AccountData]) -> list[AccountData]:
    """The accounts, those marked whose business has the name of another one."""
    counts = Counter(account.title for account in accounts)
    return [replace(account, is_namesake=counts[account.title] > 1) for account in accounts]


def _read_account(
    connection: duckdb.DuckDBPyConnection,
    name: str,
    as_of: dt.datetime | None,
    published: Published,
    now: dt.datetime,
) -> AccountData:
    zone = next(
        (
            str(row["timezone"])
            for row in _fetch_rows(connection, QUERIES["business"], name)
            if row["timezone"]
        ),
        "UTC",
    )
    today = (as_of or published.published_at).astimezone(ZoneInfo(zone)).date()
    fetch_rows(connection, f"set variable today = date '{today}'")
    fetch_rows(connection, f"set variable zone = {quote_text(zone)}")
    found = {key: _fetch_rows(connection, sql, name) for key, sql in QUERIES.items()}
    return AccountData(
        name, as_of, today, zone, found, now, published.personal_data is PersonalData.KEEP
    )


def drop_personal(report: ReportData) -> ReportData:
    """The same without personal data, whatever is published: to leave this machine."""

    def clean_row(row: Row) -> Row:
        kept = {
            name: mask_addresses(value) if isinstance(value, str) else value
            for name, value in row.items()
        }
        return kept | dict.fromkeys(_PERSONAL & row.keys())

    accounts = [
        replace(
            each,
            has_texts=False,
            rows={key: [*map(clean_row, found)] for key, found in each.rows.items()},
        )
        for each in report.accounts
    ]
    return ReportData(replace(report.published, personal_data=PersonalData.DROP), accounts)


def _fetch_rows(connection: duckdb.DuckDBPyConnection, sql: str, account: str) -> Rows:
    try:
        return fetch_records(connection, sql, {"account": account})
    except duckdb.CatalogException:
        return []
