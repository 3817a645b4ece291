"""Which columns are personal: declared ones, those that are made of personal ones, and those nobody knows."""

import pytest

from tests.warehouse.lineage import Sources, follow
from warehouse.dbt_project import Node
from warehouse.masking import is_link, is_personal, load_lineage, personal_of
from warehouse.tables import SYNC_TABLES, TABLES

#: Types of the tables that the queries below read.
TYPES = {
    table.qualified: {column.name: column.sql_type for column in table.columns}
    for table in (*TABLES.values(), *SYNC_TABLES)
}


def model(relation: str, sql: str, declared: dict[str, bool]) -> Node:
    name = relation.partition(".")[2]
    return Node(name, "table", name, relation, "", sql, (), declared=declared)


def made_of(sql: str, **declared: bool) -> Sources:
    """What the column `x` of such a model is made of."""
    return follow([model("marts.m", sql, declared)], TYPES | {"marts.m": {"x": "VARCHAR"}})["marts.m"]["x"]


@pytest.mark.parametrize(
    "sql",
    [
        "select email as x from source.contacts",
        "select upper(trim(email)) || 'a' as x from source.contacts",
        "select split_part(email, '@', -1) as x from source.contacts",
        "select coalesce(null, email) as x from source.contacts",
        "select case when status = 'active' then email end as x from source.contacts",
        "with c as (select * from source.contacts), d as (select c.email as y from c) select y as x from d",
        "select 'a' as x union all select email from source.contacts",
        "select 'a' as x union all by name select email as x from source.contacts",
        "select (select max(c.email) from source.contacts as c where c.list_id = l.list_id) as x from "
        "source.lists as l",
        "select list(email) as x from source.contacts group by list_id",
        "select arg_max(email, registered_at) as x from source.contacts",
        "select lag(email) over (partition by list_id order by contact_id) as x from source.contacts",
        "select max(email) filter (where status = 'active') as x from source.contacts",
        "select {'a': {'b': email}}.a.b as x from source.contacts",
        "select list_transform([email], lambda one: one || 'a') as x from source.contacts",
        "select [one || 'a' for one in [email] if one <> ''] as x from source.contacts",
        "select list_transform([1], lambda one: one || email) as x from source.contacts",
        "select x from (select unnest([email]) as x from source.contacts)",
        "select u.x from source.contacts, unnest([email]) as u(x)",
        "select email as x from source.contacts join source.lists using (list_id)",
        "from source.contacts select email as x",
        "select hash(email)::varchar as x from source.contacts",
        "select regexp_extract(email, '(.*)@', 1) as x from source.contacts",
    ],
)
def test_what_is_made_of_a_personal_column_is_personal(sql: str) -> None:
    assert made_of(sql) == {"contacts.email"} or made_of(sql) == {"not known"}


@pytest.mark.parametrize(
    "sql",
    [
        "select custom_fields->>'$.phone' as x from source.contacts",
        "select json_extract_string(custom_fields, '$.phone')::bigint as x from source.contacts",
        "select try_cast(json_extract_string(custom_fields, '$.born') as date) as x from source.contacts",
    ],
)
def test_a_number_or_a_day_may_tell_of_a_person_too(sql: str) -> None:
    assert made_of(sql) == {"contacts.custom_fields"}


@pytest.mark.parametrize(
    "sql",
    [
        "select count(email) as x from source.contacts",
        "select count(distinct email) as x from source.contacts",
        "select email is not null and email like '%@%' as x from source.contacts",
        "select bool_or(email = 'a') as x from source.contacts",
        "select case when email = 'a' then 1 else 2 end as x from source.contacts",
        "select case email when 'a' then 1 else 2 end as x from source.contacts",
        "select rank() over (partition by list_id order by email) as x from source.contacts",
        "select count(*) filter (where email <> '') as x from source.contacts",
        "select l.name as x from source.lists as l join source.contacts as c on c.email = l.reply_to",
        "select status as x from source.contacts where email <> '' group by status, email",
        "select max(zone.name) as x from pg_timezone_names() as zone",
        "select y.x from (values ('a')) as y(x)",
    ],
)
def test_what_looks_at_a_personal_column_and_does_not_show_it_is_not(sql: str) -> None:
    assert made_of(sql) == frozenset()


@pytest.mark.parametrize(
    "sql",
    [
        "select nothing.y as x from somebodys.table as nothing",
        "select columns('email') from source.contacts",
        "this is no sql",
        "select * from source.contacts pivot (max(email) for status in ('active' as x))",
    ],
)
def test_what_cannot_be_followed_is_personal(sql: str) -> None:
    assert made_of(sql) != frozenset()


def test_it_goes_on_from_model_to_model_and_stops_where_it_is_declared() -> None:
    types = TYPES | {"staging.a": {"y": "VARCHAR"}, "marts.b": {"x": "VARCHAR"}, "marts.c": {"x": "VARCHAR"}}

    def models(**declared: bool) -> list[Node]:
        return [
            model("marts.c", "select x from marts.b union all select x from marts.c", {}),
            model("marts.b", "select y as x from staging.a", declared),
            model("staging.a", "select email as y from source.contacts", {}),
        ]

    everywhere = {
        "marts.c": {"x": {"contacts.email"}},
        "marts.b": {"x": {"contacts.email"}},
        "staging.a": {"y": {"contacts.email"}},
    }
    assert follow(models(), types) == everywhere
    assert follow(models(x=False), types) == everywhere | {
        "marts.c": {"x": frozenset()},
        "marts.b": {"x": frozenset()},
    }
    assert made_of("select status as x from source.contacts", x=True) == {"declared"}


def test_source_and_sync_are_as_declared_and_strangers_are_personal() -> None:
    for table in (*TABLES.values(), *SYNC_TABLES):
        schema, name = table.qualified.split(".")
        assert [is_personal(schema, name, column.name) for column in table.columns] == [
            column.is_personal for column in table.columns
        ]
    assert is_personal("source", "contacts", "a_column_no_longer_declared")
    assert is_personal("sync", "somebodys_table", "n")
    assert is_personal("marts", "somebodys_table", "status")
    assert is_personal("marts", "contact_engagement", "somebodys_column")


def test_every_column_of_every_model_is_followed() -> None:
    unknown = [
        f"{table}.{name}"
        for table, columns in load_lineage()["columns"].items()
        for name, found in columns.items()
        if "not known" in found
    ]
    assert unknown == [], "write that SQL in a simpler way, or declare the column as personal"
    assert is_personal("marts", "contact_campaign", "message_text")
    assert not is_personal("marts", "contact_campaign", "subject")
    assert is_personal("marts", "attribution", "email")
    assert is_personal("history", "contacts", "custom_fields")
    assert not is_personal("marts", "data_freshness", "reason")


def test_links_are_followed_and_are_not_personal_by_themselves() -> None:
    assert made_of("select upper(url) as x from source.campaign_links") == {"campaign_links.url"}
    for relation, column in (
        ("source.campaign_links", "url"),
        ("history.campaign_links_daily", "url"),
        ("marts.campaign_link_clicks", "link_text"),
        ("marts.attribution", "link"),
    ):
        assert is_link(*relation.split("."), column)
        assert personal_of(relation, [column]) == []
    assert not is_link("marts", "campaign_link_clicks", "click_count")
    assert is_link("marts", "somebodys_table", "status") is False
