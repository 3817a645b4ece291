"""`marketing-sync person` shows all that is known about one person, where it comes from, and nothing of anybody
else."""

from __future__ import annotations

import json
import shutil
import stat
from collections import Counter
from pathlib import Path
from typing import Any

import duckdb
import pytest

from tests.fixtures import Command, Night

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
def filled(home: Path, nights: tuple[Night, Night]) -> Path:
    """A home of a whole night, which tests may change."""
    home.mkdir()
    shutil.copy(nights[1].home / "warehouse.duckdb", home)
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


def shown(folder: Path) -> tuple[dict[str, Any], str]:
    return json.loads((folder / "person.json").read_text(encoding="utf-8")), (
        folder / "person.html"
    ).read_text(encoding="utf-8")


def counts(document: dict[str, Any]) -> Counter[str]:
    return Counter({each["table"]: len(each["rows"]) for each in document["tables"] if each["is_about"]})


@pytest.mark.slow
def test_every_row_about_them_is_there_and_nobody_else(
    command: Command, filled: Path, tmp_path: Path
) -> None:
    address, contacts = somebody(filled)
    ran = command("person", address.upper(), "--to", str(tmp_path / "told"))
    assert ran.code == 0, ran.text
    document, page = shown(tmp_path / "told")
    found = counts(document)
    for table in ABOUT:
        by_id = table.startswith("timeline")
        which = "list_contains(?, contact_id)" if by_id else "lower(email) = ?"
        expected = ask(
            filled, f"select count(*) from source.{table} where {which}", contacts if by_id else address
        )
        assert expected == [(found[f"source.{table}"],)], table
    assert found["source.timeline_events"] > 3
    assert found["marts.contact_campaign"] > 0
    assert found["history.contacts"] == len(contacts)
    assert found["sync.requests"] >= len(contacts)
    others = [
        email
        for (email,) in ask(
            filled, "select distinct lower(email) from source.contacts where lower(email) <> ?", address
        )
    ]
    assert len(others) > 50
    for text in (page.lower(), json.dumps(document).lower()):
        assert address in text
        assert [other for other in others if other in text] == []
    origins = {each["table"]: each["origin"] for each in document["tables"]}
    assert origins["source.coupons"] == "responses of the service to emailmarketing/getcoupon"
    assert all(origins.values())
    files = [tmp_path / "told", *(tmp_path / "told").iterdir()]
    assert {stat.S_IMODE(path.stat().st_mode) & 0o077 for path in files} == {0}


@pytest.mark.slow
def test_by_contact_is_the_same_person(command: Command, filled: Path, tmp_path: Path) -> None:
    address, contacts = somebody(filled)
    assert command("person", address, "--to", str(tmp_path / "a")).code == 0
    assert command("person", "--contact-id", str(contacts[0]), "--to", str(tmp_path / "b")).code == 0
    one, other = (shown(tmp_path / name)[0] for name in "ab")
    assert {name: one[name] for name in one if name != "made_at"} == {
        name: other[name] for name in other if name != "made_at"
    }


@pytest.mark.slow
def test_an_earlier_address_belongs_to_them(command: Command, filled: Path, tmp_path: Path) -> None:
    address, contacts = somebody(filled)
    ask(filled, "update source.contacts set email = 'new@name.example' where contact_id = ?", contacts[0])
    assert command("person", "new@name.example", "--to", str(tmp_path / "told")).code == 0
    document, _ = shown(tmp_path / "told")
    assert set(document["addresses"]) == {address, "new@name.example"}
    assert counts(document)["source.coupons"] > 0, "which are of the earlier address"


@pytest.mark.slow
def test_rows_of_others_are_quoted_around_the_address_only(
    command: Command, filled: Path, tmp_path: Path
) -> None:
    address, _ = somebody(filled)
    words = f"{'x' * 200} SECRET {'y ' * 60} ask {address.replace('@', '%40')}, who knows {'z ' * 60} SECRET"
    columns = "(account, review_id, email, phone, inquiry)"
    review = (
        f"insert into source.direct_reviews {columns} values ('main', 99, 'bob@other.example', '123456', ?)"
    )
    ask(filled, review, words)
    ask(
        filled,
        review.replace("99", "98"),
        f"the address of jo{address} is another one, as {address}.example is",
    )
    assert command("person", address, "--to", str(tmp_path / "told")).code == 0
    document, page = shown(tmp_path / "told")
    named = [each for each in document["tables"] if not each["is_about"]]
    assert [(each["table"], len(each["rows"])) for each in named] == [("source.direct_reviews", 1)]
    assert "who knows" in named[0]["rows"][0]["text"]
    for hidden in ("SECRET", "bob@other.example", "123456", f"jo{address}"):
        assert hidden not in page


@pytest.mark.slow
def test_the_same_contact_of_another_account_is_somebody_else(
    command: Command, filled: Path, tmp_path: Path
) -> None:
    address, contacts = somebody(filled)
    ask(
        filled,
        "insert into source.timeline_events (account, contact_id, event_key, snippet) values ('other', ?, "
        "'k', 'elsewhere')",
        contacts[0],
    )
    assert command("person", address, "--to", str(tmp_path / "told")).code == 0
    assert "elsewhere" not in shown(tmp_path / "told")[1]


@pytest.mark.slow
def test_texts_of_strangers_are_no_markup(command: Command, filled: Path, tmp_path: Path) -> None:
    address, contacts = somebody(filled)
    ask(
        filled,
        "update source.timeline_events set snippet = '<script>alert(1)</script>' where contact_id = ?",
        contacts[0],
    )
    assert command("person", address, "--to", str(tmp_path / "told")).code == 0
    page = shown(tmp_path / "told")[1]
    assert "&lt;script&gt;" in page
    assert "<script" not in page


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["--to", "DIR"], "say who"),
        (["ann@example.com", "--contact-id", "5", "--to", "DIR"], "say who"),
        (["ann", "--to", "DIR"], "not an e-mail address"),
        (["ann@example.com"], "--to DIR"),
        (["ann@example.com", "--account", "nowhere", "--to", "DIR"], "no account is named"),
    ],
)
def test_wrong_use_is_said(
    command: Command, filled: Path, tmp_path: Path, words: list[str], text: str
) -> None:
    ran = command("person", *(str(tmp_path / "told") if word == "DIR" else word for word in words))
    assert ran.code == 2
    assert text in ran.text
    assert not (tmp_path / "told").exists()


@pytest.mark.slow
def test_nothing_is_written_over_and_nobody_leaves_no_file(
    command: Command, filled: Path, tmp_path: Path
) -> None:
    address, _ = somebody(filled)
    ran = command("person", "nobody@nowhere.example", "--to", str(tmp_path / "told"))
    assert (ran.code, ran.out) == (0, "nothing is known of this person\n")
    assert not (tmp_path / "told").exists()
    assert command("person", address, "--to", str(tmp_path / "told")).code == 0
    before = (tmp_path / "told" / "person.html").read_bytes()
    ran = command("person", address, "--to", str(tmp_path / "told"))
    assert ran.code == 2
    assert "name another folder" in ran.text
    assert (tmp_path / "told" / "person.html").read_bytes() == before


def test_before_the_first_sync_that_is_said(command: Command, home: Path, tmp_path: Path) -> None:
    ran = command("person", "ann@example.com", "--to", str(tmp_path / "told"))
    assert ran.code == 1
    assert "nothing has been synced" in ran.text
