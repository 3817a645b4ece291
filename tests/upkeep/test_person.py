"""`marketing-sync person` prints all that is known about one person, and nothing of anybody else."""

import json
import shutil
from pathlib import Path
from typing import Any

import duckdb
import pytest

from home.settings import Settings
from tests.fixtures import Command, Night
from upkeep.erasing import find_people

ABOUT = (
    "contacts",
    "coupons",
    "timeline_events",
    "timeline_visits",
    "timeline_automations",
    "campaign_clickers",
    "direct_reviews",
)


@pytest.fixture
def filled(home: Path, rough_night: Night) -> Path:
    """A home of a whole night, which tests may change."""
    home.mkdir()
    shutil.copy(rough_night.home / "warehouse.duckdb", home)
    return home


def ask(home: Path, sql: str, *values: object) -> list[tuple[Any, ...]]:
    with duckdb.connect(str(home / "warehouse.duckdb")) as connection:
        return connection.execute(sql, list(values)).fetchall()


def somebody(home: Path) -> tuple[str, list[int]]:
    """Whoever has most in their timelines, with coupons: the address, and all their contacts."""
    sql = """
        with counted as (select contact_id, count(*) as events from source.timeline_events group by all)
        select lower(email), list(distinct contact_id order by contact_id)
        from source.contacts left join counted using (contact_id)
        where lower(email) in (select lower(email) from source.coupons)
        group by all order by sum(events) desc nulls last, 1 limit 1
    """
    return ask(home, sql)[0]  # type: ignore[return-value]


def known(command: Command, *words: str) -> dict[str, Any]:
    ran = command("person", *words)
    assert ran.code == 0, ran.text
    return json.loads(ran.out)  # type: ignore[no-any-return]


@pytest.mark.slow
def test_every_row_about_them_is_there_and_nobody_else(command: Command, filled: Path) -> None:
    address, contacts = somebody(filled)
    found = known(command, address.upper())
    rows = found["rows"]
    for table in ABOUT:
        by_id = table.startswith("timeline")
        which = "list_contains(?, contact_id)" if by_id else "lower(email) = ?"
        expected = ask(
            filled, f"select count(*) from source.{table} where {which}", contacts if by_id else address
        )
        assert expected == [(len(rows.get(f"source.{table}", ())),)], table
    assert len(rows["source.timeline_events"]) > 3
    assert len(rows["history.contacts"]) == len(contacts)
    assert len(rows["sync.requests"]) >= len(contacts)
    assert [each["contact_id"] for each in found["contacts"]] == contacts
    others = [
        email
        for (email,) in ask(
            filled, "select distinct lower(email) from source.contacts where lower(email) <> ?", address
        )
    ]
    assert len(others) > 50
    text = json.dumps(found).lower()
    assert address in text
    assert [other for other in others if other in text] == []


@pytest.mark.slow
def test_by_contact_is_the_same_person(command: Command, filled: Path) -> None:
    address, contacts = somebody(filled)
    assert known(command, address) == known(command, "--contact-id", str(contacts[0]))


@pytest.mark.slow
def test_an_earlier_address_belongs_to_them(command: Command, filled: Path) -> None:
    address, contacts = somebody(filled)
    ask(filled, "update source.contacts set email = 'new@name.example' where contact_id = ?", contacts[0])
    found = known(command, "new@name.example")
    assert set(found["addresses"]) == {address, "new@name.example"}
    assert found["rows"]["source.coupons"], "which are of the earlier address"


@pytest.mark.slow
def test_the_same_contact_of_another_account_is_somebody_else(command: Command, filled: Path) -> None:
    address, contacts = somebody(filled)
    ask(
        filled,
        "insert into source.timeline_events (account, contact_id, event_key, snippet) values ('other', ?, "
        "'k', 'elsewhere')",
        contacts[0],
    )
    assert "elsewhere" not in json.dumps(known(command, address))
    other = "insert into source.contacts (account, contact_id, list_id, email) values ('other', ?, 1, ?)"
    ask(filled, other, contacts[0], "ben@elsewhere.example")
    (filled / "identity.json").write_text('{"accounts": {"other": {}}}')  # it is no longer configured
    found = known(command, "--contact-id", str(contacts[0]), "--account", "other")
    assert found["addresses"] == ["ben@elsewhere.example"]
    ask(filled, other, 1, address)
    (person,) = find_people(Settings(filled), [], ("main", contacts[0]))
    assert ("other", 1) in person.contacts, "forgotten everywhere"


@pytest.mark.slow
def test_nobody_has_no_rows(command: Command, filled: Path) -> None:
    assert somebody(filled)
    found = known(command, "nobody@nowhere.example")
    assert (found["contacts"], found["rows"]) == ([], {})


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ([], "name one person"),
        (["ann@example.com", "--contact-id", "5"], "name one person"),
        (["ann"], "not an e-mail address"),
        (["ann@example.com", "--account", "nowhere"], "no account is named"),
    ],
)
def test_wrong_use_is_said(command: Command, filled: Path, words: list[str], text: str) -> None:
    assert filled.exists()
    ran = command("person", *words)
    assert (ran.code, text in ran.text) == (2, True)
