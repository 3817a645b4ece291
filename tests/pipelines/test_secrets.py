"""The key is only on the wire, at any log level; addresses are in no log and not in Dagster's storage."""

import json
from pathlib import Path

import duckdb
import pytest

from tests.fixtures import UNMISTAKABLE, Command, Night, StartSandbox
from tests.pipelines.leftovers import contents
from tests.pipelines.running import finish, start
from tests.waiting import wait_until
from warehouse.tables import TABLES

PASSWORD = "unmistakable-password-55e0b1"


def people_of(home: Path) -> set[str]:
    """Texts of the personal columns: addresses, and others that say something about somebody: those that
    stand in other columns as well (the business's name as a sender) do not."""
    others = "\n".join(texts_of(home, personal=False))
    return {
        text
        for text in texts_of(home, personal=True)
        if "@" in text[1:] or (len(text) > 6 and text not in others)
    }


def texts_of(home: Path, *, personal: bool) -> set[str]:
    """What stands in the text columns that are personal, or in those that are not."""
    with duckdb.connect(str(home / "warehouse.duckdb"), read_only=True) as connection:
        return {
            text
            for table in TABLES.values()
            for column in table.columns
            if column.sql_type == "VARCHAR" and column.is_personal is personal
            for (text,) in connection.execute(
                f'select distinct "{column.name}" from {table.qualified}'
            ).fetchall()
            if text
        }


def test_the_key_is_not_printed_at_debug_level(rough_night: Night) -> None:
    assert (
        "DEBUG marketing_api.client: account main: Call(emailmarketing/getcoupon: email): HTTP"
        in rough_night.ran.err
    ), "nothing was logged: this proves nothing"
    assert UNMISTAKABLE not in rough_night.ran.text


def test_the_key_is_in_nothing_that_a_night_leaves_behind(rough_night: Night) -> None:
    found = dict(contents(rough_night.home))
    suffixes = {Path(where.partition(": ")[0]).suffix for where in found}
    assert suffixes >= {".parquet", ".duckdb", ".db", ".sqlite", ".yaml", ".log"}
    assert b"@example" in b"".join(
        content for where, content in found.items() if where.endswith(": bodies")
    ), "bodies were not opened"
    assert [where for where, content in found.items() if UNMISTAKABLE.encode() in content] == []


def test_the_key_is_in_no_ledger_of_a_killed_run(start_sandbox: StartSandbox, home: Path) -> None:
    stalled = ("--fault-stall", "1@emailmarketing/getcontacts", "--stall-seconds", "600")
    service = start_sandbox("--key", UNMISTAKABLE, "--fault-502-html", "0.1", *stalled)
    process = start(home, service, "sync", "--only", "lists", "contacts", MARKETING_API_KEY=UNMISTAKABLE)
    wait_until(lambda: service.count >= 12 or process.poll() is not None)
    process.kill()
    process.communicate()
    found = dict(contents(home))
    assert any(where.endswith("ledger.sqlite: bodies") and content for where, content in found.items())
    assert [where for where, content in found.items() if UNMISTAKABLE.encode() in content] == []


def test_nothing_personal_is_in_a_log_or_in_dagsters_storage(rough_night: Night) -> None:
    """Texts, not addresses, that are in other columns too (the business as sender) name nobody."""
    people = people_of(rough_night.home)
    assert len({text for text in people if "@" in text}) > 50
    assert len({text for text in people if "@" not in text}) > 100
    people |= {json.dumps(text)[1:-1] for text in people}
    found = contents(rough_night.home)
    kept = {where: content for where, content in found if where.startswith(("dagster/", "logs/"))}
    logged = any(b"Call(emailmarketing/getcoupon: email)" in content for content in kept.values())
    assert logged, "nothing was logged: this proves nothing"
    assert [text for text in people if text in rough_night.ran.text] == []
    # Tens of megabytes, of few different words: only what these contain is looked for in all of it.
    words = b"\n".join({word for content in kept.values() for word in content.split()})
    spelled = [text.encode() for text in people]
    possible = [text for text in spelled if max(text.split(), key=len) in words]
    assert [(where, text) for where, content in kept.items() for text in possible if text in content] == []


def test_the_home_is_its_owners_alone(rough_night: Night) -> None:
    assert rough_night.home.stat().st_mode & 0o077 == 0
    assert [path.name for path in rough_night.home.rglob("*") if path.stat().st_mode & 0o077] == []


@pytest.mark.parametrize("fault", ["none", "lost-answer", "500-after", "html-200"])
def test_a_call_shows_neither_key_nor_password(start_sandbox: StartSandbox, home: Path, fault: str) -> None:
    faults = () if fault == "none" else (f"--fault-{fault}", "1@register/createaccount")
    service = start_sandbox("--key", UNMISTAKABLE, *faults)
    given = {
        "contact_name": "Ann",
        "business_name": "Harbor",
        "business_email": "ann@example.com",
        "business_phone": "5550100",
        "plan_id": "3",
        "business_service_name": "harbor",
        "business_password": PASSWORD,
    }
    words = ("call", "register/createaccount", *(f"{name}={value}" for name, value in given.items()), "--yes")
    ran = finish(start(home, service, *words, MARKETING_API_KEY=UNMISTAKABLE, MARKETING_LOG="DEBUG"))
    assert ran.code == (0 if fault == "none" else 1), ran.text
    assert ("Check whether it took effect" in ran.err) == (fault != "none")
    assert PASSWORD not in ran.text
    assert UNMISTAKABLE not in ran.text
    asked = [entry["operation"] for entry in service.asked()]
    assert asked == ["app/me", "register/createaccount"], "a write is never sent again"


def test_a_write_is_shown_without_its_password_before_it_is_agreed_to(
    command: Command, start_sandbox: StartSandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("builtins.input", lambda prompt: "n")
    words = [
        f"{name}=x" for name in ("contact_name", "business_name", "business_phone", "business_service_name")
    ]
    given = [*words, "business_email=ann@example.com", "plan_id=3", f"business_password={PASSWORD}"]
    ran = command("call", "register/createaccount", *given, sandbox=start_sandbox())
    assert "business_password=***" in ran.err
    assert PASSWORD not in ran.text
