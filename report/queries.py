"""Reads the report's rows from the published file, by the queries in `sql/`. Not here: figures
(`figures`), layout (`templates/`)."""

import datetime as dt
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import duckdb

from marketing_api.address import mask_addresses
from report.row_types import ReportRows, Row, Rows
from warehouse.errors import NothingPublished
from warehouse.policies import PersonalData
from warehouse.publish import Published, open_published, read_published_facts
from warehouse.sql import fetch_records, fetch_rows, quote_text

#: Name → the query for the rows of one `$account`. The variables `today` and `zone` are its date
#: and time zone.
QUERIES = {
    path.stem: path.read_text(encoding="utf-8")
    for path in sorted(Path(__file__).with_name("sql").glob("*.sql"))
}

#: The personal columns of these queries.
_PERSONAL = frozenset({"username", "email", "phone", "inquiry", "reason", "message_text"})


@dataclass(frozen=True, slots=True)
class AccountData:
    """The report's data of one account. `today`: the account's date of its newest response;
    `made_at`: when the report is made; `has_texts`: whether it contains personal texts;
    `is_namesake`: whether another account has the same business name."""

    name: str
    as_of: dt.datetime | None
    today: dt.date
    zone: str
    rows: ReportRows
    made_at: dt.datetime
    has_texts: bool = True
    is_namesake: bool = False

    @property
    def title(self) -> str:
        """The business's name, or else the account's; both for namesakes."""
        names = (str(row["business_name"]) for row in self.rows["business"] if row["business_name"])
        title = next(names, self.name)
        return f"{title} ({self.name})" if self.is_namesake else title

    def is_read(self, subject: str, *parts: str) -> bool:
        """Whether the subject and its existing parts were read completely. Only then is something
        known to be absent."""
        coverage = {row["subject"]: row["coverage_rate"] for row in self.rows["freshness"]}
        is_whole = all(coverage.get(part) in (1, None) for part in parts)
        return coverage.get(subject) == 1 and is_whole


@dataclass(frozen=True, slots=True)
class ReportData:
    """The report's data of a published file; without accounts, nothing was read yet."""

    published: Published
    accounts: Sequence[AccountData]


def read_report(path: Path, now: dt.datetime) -> ReportData:
    """The report's data from the published file. A model that isn't in it has no rows. Raises
    NothingPublished when there is no file."""
    published = read_published_facts(path)
    if published is None:
        raise NothingPublished(path)
    with open_published(path) as connection:
        return read_accounts(connection, published, now)


#: The newest reading by account, without times after publishing, from a clock that was ahead.
_NEWEST = (
    "select account, coalesce(max(as_of) filter (as_of <= $1 + interval 5 minute), max(as_of)) "
    "from sync.coverage group by account order by account"
)


def read_accounts(
    connection: duckdb.DuckDBPyConnection, published: Published, now: dt.datetime
) -> ReportData:
    """The report's data from a connection whose time zone is UTC."""
    newest = fetch_rows(connection, _NEWEST, [published.published_at])
    accounts = [_read_account(connection, name, as_of, published, now) for name, as_of in newest]
    return ReportData(published, mark_namesakes(accounts))


def mark_namesakes(accounts: Sequence[AccountData]) -> list[AccountData]:
    """The accounts, with `is_namesake` set where several have the same business name."""
    counts = Counter(account.title for account in accounts)
    return [replace(account, is_namesake=counts[account.title] > 1) for account in accounts]


def _read_account(
    connection: duckdb.DuckDBPyConnection,
    name: str,
    as_of: dt.datetime | None,
    published: Published,
    now: dt.datetime,
) -> AccountData:
    zone = find_zone(connection, name)
    local = ZoneInfo(zone)
    today = (as_of or published.published_at).astimezone(local).date()
    fetch_rows(connection, f"set variable today = date '{today}'")
    fetch_rows(connection, f"set variable zone = {quote_text(zone)}")
    rows: Any = {key: _fetch_rows(connection, sql, name, local) for key, sql in QUERIES.items()}
    has_texts = published.personal_data is PersonalData.KEEP
    return AccountData(name, as_of, today, zone, rows, now, has_texts)


def find_zone(connection: duckdb.DuckDBPyConnection, account: str | None) -> str:
    """The time zone that the account's days are of."""
    businesses = _fetch_rows(connection, QUERIES["business"], account, dt.UTC)
    zones = (str(row["timezone"]) for row in businesses if row["timezone"])
    return next(zones, "UTC")


def drop_personal(report: ReportData) -> ReportData:
    """The report without personal data, so that it may leave this machine."""

    def clean_row(row: Row) -> Row:
        masked = {
            name: mask_addresses(value) if isinstance(value, str) else value
            for name, value in row.items()
        }
        return masked | dict.fromkeys(_PERSONAL & row.keys())

    accounts = []
    for account in report.accounts:
        rows: Any = account.rows
        cleaned: Any = {name: list(map(clean_row, found)) for name, found in rows.items()}
        accounts.append(replace(account, has_texts=False, rows=cleaned))
    return ReportData(replace(report.published, personal_data=PersonalData.DROP), accounts)


def _fetch_rows(
    connection: duckdb.DuckDBPyConnection, sql: str, account: str | None, zone: dt.tzinfo
) -> Rows:
    """The rows, with times in the zone: the page displays their days."""
    try:
        found = fetch_records(connection, sql, {"account": account})
    except duckdb.CatalogException:
        return []
    for row in found:
        for name, value in row.items():
            if isinstance(value, dt.datetime):
                with suppress(OverflowError):  # on the first or last day of the calendar
                    row[name] = value.astimezone(zone)
    return found
