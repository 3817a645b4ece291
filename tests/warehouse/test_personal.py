"""Which columns are personal: declared ones, those that models declare, and those nobody vouches for."""

from __future__ import annotations

import pytest

from warehouse.personal import described, is_personal, model_says, read_descriptions
from warehouse.sync_tables import SYNC_TABLES
from warehouse.tables import TABLES

MODELS = read_descriptions(
    [
        None,
        {
            "models": [
                {
                    "name": "contact_engagement",
                    "columns": [
                        {"name": "email"},
                        {"name": "nickname", "config": {"meta": {"personal": True}}},
                        {"name": "first_name", "meta": {"personal": True}},
                        {"name": "from_name", "config": {"meta": {"personal": False}}},
                        {"name": "tier"},
                    ],
                },
                {"name": "contacts_versions", "config": {"alias": "contacts"}, "columns": [{"name": "valid_from"}]},
            ]
        },
    ]
)


@pytest.mark.parametrize(
    ("table", "column", "expected"),
    [
        ("contact_engagement", "nickname", True),
        ("contact_engagement", "first_name", True),
        ("contact_engagement", "email", True),  # its name says so
        ("contact_engagement", "from_name", False),  # its yml knows better
        ("contact_engagement", "tier", False),
        ("contact_engagement", "undescribed", True),
        ("contacts", "valid_from", False),
        ("contacts", "status", False),  # as in source
        ("contacts", "custom_fields", True),
        ("contacts", "dbt_scd_id", False),
        ("unknown", "anything", True),
    ],
)
def test_a_column_of_a_model(table: str, column: str, expected: bool) -> None:
    assert model_says(MODELS, table, column) is expected


def test_source_and_sync_are_as_declared_and_strangers_are_personal() -> None:
    for table in (*TABLES.values(), *SYNC_TABLES):
        schema, name = table.qualified.split(".")
        assert [is_personal(schema, name, column.name) for column in table.columns] == [column.is_personal for column in table.columns]
    assert is_personal("source", "contacts", "a_column_no_longer_declared")
    assert is_personal("sync", "somebodys_table", "n")


def test_the_models_of_this_project_are_read() -> None:
    assert ("stg_contacts", "email") in described()
