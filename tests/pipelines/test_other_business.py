"""Listings in which nobody is left who is known are another account's: nothing of them is loaded, whatever
their size."""

from collections import Counter
from pathlib import Path
from typing import Any

import duckdb
import pytest

from assets.sources import SOURCE_ASSETS
from home.identity import FILE
from home.settings import Settings
from marketing_api.client import Connection, Secret
from marketing_api.errors import OtherBusiness
from marketing_api.sandbox.app import RULES
from pipelines.reading import ReadOptions, open_reader
from tests.fixtures import Command
from tests.pipelines.sandboxes import KEY, Sandbox
from tests.pipelines.tables import query, source

pytestmark = pytest.mark.usefixtures("unrecorded")


def shift(home: Path, table: str, where: str = "true", by: int = 1_000_000_000) -> None:
    """What is known has other ids from now on, as if it had come from somewhere else."""
    key = {"contacts": "contact_id", "lists": "list_id", "campaigns": "campaign_id"}[table]
    with duckdb.connect(str(home / "warehouse.duckdb")) as connection:
        connection.execute(f"update source.{table} set {key} = {key} + {by} where {where}")


def read(home: Path, service: Sandbox, *names: str, **options: Any) -> tuple[list[str], bool]:
    """The problems, and whether the account was found to be another one."""
    settings = Settings(home, (Connection("main", service.url, Secret(KEY)),))
    with open_reader(settings, [SOURCE_ASSETS[name] for name in names], ReadOptions(**options)) as reader:
        reader.begin_reading()
        reader.finish_reading()
        reader.note_run("again", "nightly_sync")
        problems = [line for lines in reader.list_missing_reasons().values() for line in lines]
        return problems, any(isinstance(session.error, OtherBusiness) for session in reader.sessions)


def asked(service: Sandbox, since: int) -> set[str]:
    return {entry["operation"] for entry in service.asked(since)}


def test_contacts_of_whom_nobody_is_left_are_not_loaded_until_a_person_says_so(
    home: Path, service: Sandbox
) -> None:
    shift(home, "contacts")
    before = source(home)
    problems, is_other = read(home, service, "contacts")
    assert is_other
    (line,) = problems
    assert line.startswith("none of the 100 known contacts is listed, but 100 others are: ")
    assert "--accept-shrink" in line
    assert source(home) == before

    shift(home, "contacts", by=-1_000_000_000)
    since = service.count
    assert read(home, service, "contacts") == ([], False)
    assert "emailmarketing/getcontacts" in asked(service, since), "what the other account said was used again"
    assert source(home)["contacts"]

    shift(home, "contacts")
    assert read(home, service, "contacts", accept_shrink=True) == ([], False)
    assert query(home, "select count(*), count(_deleted_at) from source.contacts") == [(200, 100)]


def test_other_lists_end_the_reading_of_the_account(home: Path, service: Sandbox) -> None:
    shift(home, "lists")
    before, since = source(home), service.count
    problems, is_other = read(home, service, "lists", "contacts")
    assert is_other
    assert len(problems) == 2
    assert set(problems) == {problems[0]}
    assert asked(service, since) == {"app/me", "emailmarketing/getlists"}
    assert source(home) == before


def test_a_list_whose_members_were_all_exchanged_is_loaded_while_others_have_whom_they_had(
    home: Path, service: Sandbox
) -> None:
    ((smallest, size),) = query(
        home, "select list_id, count(*) from source.contacts group by all order by 2 limit 1"
    )
    shift(home, "contacts", f"list_id = {smallest}")
    assert read(home, service, "contacts") == ([], False)
    assert query(
        home, f"select count(*), count(_deleted_at) from source.contacts where list_id = {smallest}"
    ) == [(2 * size, size)]


@pytest.fixture
def nameless(monkeypatch: pytest.MonkeyPatch, home: Path, service: Sandbox) -> None:
    """The service has never told whose account it is."""
    monkeypatch.setitem(RULES, "app/me", lambda call: {"timezone": "America/New_York"})
    (home / FILE).unlink()
    with duckdb.connect(str(home / "warehouse.duckdb")) as connection:
        connection.execute(
            "update source.business set business_id = null, business_name = null, service_name = null"
        )


OTHERS = ("online_reviews", "users", "direct_reviews", "webhooks")


@pytest.mark.parametrize("names", [OTHERS, ("lists", *OTHERS)], ids=["nothing that tells", "with lists"])
def test_where_nobody_is_named_nothing_else_is_requested_before_a_listing_tells(
    nameless: None, home: Path, service: Sandbox, command: Command, names: tuple[str, ...]
) -> None:
    shift(home, "lists")
    before, since = source(home), service.count
    for _ in range(2):
        ran = command("sync", "--only", *names, sandbox=service)
        assert (ran.code, "none of the 5 known lists and campaigns is listed" in ran.text) == (2, True), (
            ran.text
        )
        assert asked(service, since) == {"app/me", "emailmarketing/getlists"}
        assert source(home) == before

    shift(home, "lists", by=-1_000_000_000)
    since = service.count
    assert command("sync", "--only", *names, sandbox=service).code == 0
    again = Counter((entry["operation"], *sorted(entry["params"].items())) for entry in service.asked(since))
    assert set(again.values()) == {1}, "what told whose account it is was requested twice"
    assert {"emailmarketing/getlists", "user/lists"} <= {operation for operation, *_ in again}
    assert query(home, "select count(*) from source.lists where _deleted_at is not null") == [(0,)]


def test_a_business_that_is_named_for_the_first_time_is_compared_by_its_data(
    nameless: None, monkeypatch: pytest.MonkeyPatch, home: Path, service: Sandbox, command: Command
) -> None:
    """The key was another account's, which is not noted: the right one goes on."""
    monkeypatch.setitem(RULES, "app/me", lambda call: {"businessName": "Somebody"})
    shift(home, "lists")
    before = source(home)
    assert command("sync", "--only", "users", sandbox=service).code == 2
    assert source(home) == before
    assert not (home / FILE).exists()

    shift(home, "lists", by=-1_000_000_000)
    assert command("sync", "--only", "users", sandbox=service).code == 0
    assert b"Somebody" in (home / FILE).read_bytes()


def test_a_first_night_of_nobody_waits_for_no_listing(
    nameless: None, tmp_path: Path, service: Sandbox, command: Command
) -> None:
    since, first = service.count, str(tmp_path / "first")
    assert command("sync", "--only", "users", sandbox=service, MARKETING_HOME=first).code == 0
    assert asked(service, since) == {"app/me", "user/lists"}


@pytest.mark.parametrize("table", ["lists", "campaigns"])
def test_the_command_ends_with_2_and_what_to_do(
    home: Path, service: Sandbox, command: Command, table: str
) -> None:
    if table == "campaigns":
        assert command("sync", "--only", "campaigns", sandbox=service).code == 0
    shift(home, table)
    ran = command("sync", "--only", table, sandbox=service)
    assert ran.code == 2
    assert f"{table} is listed" in ran.out
    assert query(home, f"select count(*) from source.{table} where _deleted_at is not null") == [(0,)]
    assert command("sync", "--only", table, "--accept-shrink", sandbox=service).code == 0
