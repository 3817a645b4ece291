"""Describes the current published copy, for people and for `--json`. Separate from `publishing`, so
that commands that only describe the copy start faster."""

import datetime as dt
from contextlib import suppress

from home import output
from home.freshness import format_age
from home.settings import Settings
from marketing_api.redaction import plain
from warehouse.disk import published_path
from warehouse.errors import PublishedLocked
from warehouse.policies import PersonalData
from warehouse.publish import Published, list_custom_failures, read_published_facts


def list_failed_custom_tables(settings: Settings) -> list[str]:
    """The custom tables that the current copy lacks, with the reason: a line per table."""
    return [plain(line) for line in list_custom_failures(published_path(settings.home))]


def describe_current_copy(settings: Settings, now: dt.datetime) -> str:
    """The published copy in a line, even if there is none or another program keeps it locked."""
    try:
        published = read_published_facts(published_path(settings.home))
    except PublishedLocked as error:
        return str(error)
    if published is None:
        return "nothing yet; `marketing-sync sync` publishes"
    return describe_published(published, now)


def published_document(
    settings: Settings, published: Published | None = None
) -> output.Published | None:
    """The published copy for `--json`; None if there is none or another program keeps it locked."""
    path = published_path(settings.home)
    if published is None:
        with suppress(PublishedLocked):
            published = read_published_facts(path)
    if published is None:
        return None
    return output.Published(
        str(path),
        published.published_at,
        published.data_as_of,
        str(published.personal_data),
        published.table_count,
        published.row_count,
    )


def describe_published(published: Published, now: dt.datetime) -> str:
    """Size, age and kind of a published copy, in a line."""
    data = f", newest data {format_age(published.data_as_of, now)}" if published.data_as_of else ""
    personal = {
        PersonalData.KEEP: "personal data unmasked",
        PersonalData.HASH: "personal data hashed",
        PersonalData.DROP: "without personal data",
    }[published.personal_data]
    size = f"{published.table_count} tables, {published.row_count:,} rows"
    return f"{size}, published {format_age(published.published_at, now)}{data}, {personal}"
