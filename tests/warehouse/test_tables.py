"""The declarations of tables hold together and reach the file."""

import re

import pytest

from docs import generate
from marketing_api.operations import ALL
from tests.warehouse.answering import Home
from warehouse import tables
from warehouse.errors import WarehouseError
from warehouse.sql import fetch_rows
from warehouse.tables import SYNC_TABLES, TABLES, Daily, Snapshot, SyncTable, Table, Window

#: Section 6 of the design: a change here is a change of what analysts rely on.
KEYS = {
    "business": "",
    "direct_reviews": "review_id",
    "online_reviews": "review_key",
    "online_review_channels": "channel, observed_on",
    "sentiment_mentions": "mention_key",
    "sentiment_totals": "from_on, to_on",
    "review_stats": "period_on",
    "social_media_stats": "period_on, network",
    "feedback_views": "period_on",
    "social_profiles": "network, kind, profile_id",
    "social_posts": "post_id, network",
    "social_post_details": "post_id, network",
    "social_links": "link_id",
    "social_link_clicks": "link_id, network, observed_on",
    "campaigns": "campaign_id",
    "campaign_stats": "campaign_id, observed_on",
    "campaign_links": "campaign_id, url, observed_on",
    "campaign_clickers": "campaign_id, url, email",
    "lists": "list_id",
    "list_fields": "list_id, field_id",
    "audiences": "audience_id",
    "contacts": "list_id, contact_id",
    "timeline_events": "contact_id, event_key",
    "timeline_visits": "contact_id, visit_key",
    "timeline_automations": "contact_id, automation_key",
    "coupons": "coupon_id",
    "users": "business_id, user_id",
    "managers": "manager_id",
    "user_groups": "group_id",
    "goals": "goal_id",
    "webhooks": "webhook_id",
}


def test_every_table_has_the_key_that_users_rely_on() -> None:
    assert {name: ", ".join(table.key) for name, table in TABLES.items()} == KEYS


def test_keys_are_the_first_columns_after_the_account() -> None:
    for table in TABLES.values():
        names = [column.name for column in table.columns]
        assert names[0] == "account"
        assert names[1 : 1 + len(table.key)] == list(table.key), table.name


def test_types_follow_the_naming_rules() -> None:
    wanted = {
        r".*_at": "TIMESTAMPTZ",
        r".*_on": "DATE",
        r".*_count": "BIGINT",
        r"(is|has)_.*": "BOOLEAN",
        "extra": "JSON",
    }
    for table in TABLES.values():
        for column in table.columns:
            for pattern, sql_type in wanted.items():
                assert not re.fullmatch(pattern, column.name) or column.sql_type == sql_type, (
                    f"{table.name}.{column.name}"
                )
            if re.fullmatch(r".*_id", column.name) and column.name not in (
                "profile_id",
                "field_id",
                "channel_id",
            ):
                assert column.sql_type == "BIGINT", f"{table.name}.{column.name}"


def test_every_table_and_column_says_what_it_is() -> None:
    declared: list[Table | SyncTable] = [*TABLES.values(), *SYNC_TABLES]
    for table in declared:
        assert table.doc, table.name
        assert all(column.comment for column in table.columns), table.name


def test_comments_reach_the_file(home: Home) -> None:
    with home.warehouse.open_for_writing() as connection:
        uncommented = fetch_rows(
            connection,
            "select schema_name || '.' || table_name from duckdb_tables() where comment is null "
            "union all select schema_name || '.' || table_name || '.' || column_name from duckdb_columns() "
            "where comment is null and not internal",
        )
    assert uncommented == []


def test_declarations_name_columns_operations_and_tables_that_exist() -> None:
    for table in TABLES.values():
        names = {column.name for column in table.columns}
        assert names >= set(table.key)
        load = table.load
        if isinstance(load, Snapshot):
            assert names >= set(load.scope)
            assert {*ALL.values(), None} >= {load.listing, load.detail}
            assert not load.within or load.within in TABLES
            assert not load.within or set(TABLES[load.within].key) <= names
            assert not load.detail or load.listing or load.within
        if isinstance(load, Window):
            assert not load.column or load.column in names
        if isinstance(load, Daily):
            assert table.key[-1] == "observed_on"


def test_every_table_is_filled_by_an_operation() -> None:
    yielded = {record for operation in ALL.values() for record in operation.records}
    assert {table.record for table in TABLES.values()} <= yielded


def test_a_column_that_is_declared_later_is_added(home: Home) -> None:
    with home.warehouse.open_for_writing() as connection:
        fetch_rows(connection, "alter table source.audiences drop column name")
        fetch_rows(connection, "delete from sync.meta where name = 'tables'")
    with home.warehouse.open_for_writing() as connection:
        columns = [name for name, *_ in fetch_rows(connection, "describe source.audiences")]
    assert set(columns) == {column.name for column in tables.AUDIENCES.columns}


def test_a_column_whose_type_changed_is_converted(home: Home) -> None:
    with home.warehouse.open_for_writing() as connection:
        fetch_rows(connection, "alter table source.audiences alter column name set data type bigint")
        fetch_rows(
            connection, "insert into source.audiences (account, audience_id, name) values ('main', 1, 5)"
        )
        fetch_rows(connection, "delete from sync.meta where name = 'tables'")
    assert home.values(tables.AUDIENCES, "name") == ["5"]


def test_a_column_whose_values_do_not_fit_its_new_type_asks_for_a_rebuild(home: Home) -> None:
    with home.warehouse.open_for_writing() as connection:
        fetch_rows(connection, "alter table source.audiences alter column audience_id set data type varchar")
        fetch_rows(connection, "insert into source.audiences (account, audience_id) values ('main', 'x')")
        fetch_rows(connection, "delete from sync.meta where name = 'tables'")
    with pytest.raises(WarehouseError, match="rebuild"), home.warehouse.open_for_writing():
        pass


def test_the_reference_page_names_every_table_and_published_column() -> None:
    text = generate.tables()
    for table in TABLES.values():
        assert f"### {table.qualified}\n" in text
        for column in table.columns:
            assert column.is_internal or column.name in text
