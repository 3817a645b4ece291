"""With a state file a sandbox remembers its writes, its clock and its origin over restarts."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from marketing_api.operations import ALL
from tests.dialects.app import AccountOptions
from tests.marketing_api.sandbox.asking import NOW, Asking, Refused, asking, params_for

Start = Callable[..., Asking]
READS = (
    "emailmarketing/getlists",
    "user/lists",
    "user/managers",
    "user/groups",
    "goal/lists",
    "webhook/lists",
    "reputation/direct",
)


@pytest.fixture
def state(tmp_path: Path) -> Path:
    return tmp_path / "state.jsonl"


@pytest.fixture
def start(state: Path) -> Start:
    """Starts a sandbox with the state file."""
    return partial(asking, state=state)


def _everything(ask: Asking) -> list[Any]:
    found: list[Any] = [ask.data(name) for name in READS]
    found.append(ask.all_contacts())
    found.append(ask.data("emailmarketing/campaigns", limit=1000))
    found.append(
        ask.data(
            "socialmedia/calendar", from_="2024-01-01", to="2027-12-31", includeposted="true", limit=1000
        )
    )
    return found


def test_every_write_is_remembered(start: Start) -> None:
    ask = start()
    fresh = _everything(ask)
    for name, params in params_for(ask).items():
        if not ALL[name].is_read and ALL[name].effect != "delete":
            ask.data(name, **params)
    for name, params in params_for(ask).items():
        if ALL[name].effect == "delete":
            ask.data(name, **params)
    written = _everything(ask)
    assert written != fresh
    assert _everything(start()) == written


def test_clock_and_order_of_writes_are_remembered(start: Start) -> None:
    ask = start()
    ask.data("emailmarketing/addcontact", email="early@example.com", listid=1801, status="Active")
    ask.control("advance", days=30)
    ask.data("emailmarketing/addcontact", email="late@example.com", listid=1801, status="Active")
    ask.control("advance", days=1.5)
    before, now = _everything(ask), ask.control("state")["now"]
    again = start()
    assert again.control("state")["now"] == now == NOW + int(31.5 * 86_400)
    assert _everything(again) == before


def test_origin_is_remembered_against_other_options(start: Start) -> None:
    ask = start(contacts=150, seed=5)
    before = ask.all_contacts()
    assert start(contacts=900, seed=6).all_contacts() == before


def test_queued_write_is_remembered(start: Start) -> None:
    ask = start(switches={"sync-delay": "60"})
    ask.data("emailmarketing/synccontact", email="queued@example.com", listid=1801, status="Active")
    assert start().data("emailmarketing/getcontactbyemail", email="queued@example.com")


def test_torn_last_line_is_dropped(start: Start, state: Path) -> None:
    ask = start()
    ask.data("goal/delete", id=301)
    with state.open("a") as file:
        file.write('{"account":"main","at":17')
    again = start()
    with pytest.raises(Refused):
        again.data("goal/show", id=301)
    again.data("goal/delete", id=303)
    assert start().data("goal/lists")["goals"]["count"] == 4


def test_refused_write_and_reads_leave_no_line(start: Start, state: Path) -> None:
    ask = start()
    before = state.read_text()
    _everything(ask)
    with pytest.raises(Refused):
        ask.data("goal/delete", id=1)
    assert state.read_text() == before


def test_file_holds_no_secret_and_is_the_owners(start: Start, state: Path) -> None:
    ask = start()
    ask.data("user/add", fullname="a", username="b", password="hunter2", type="user", group=801)
    assert "hunter2" not in state.read_text()
    assert "sandbox-key" not in state.read_text()
    assert state.stat().st_mode & 0o077 == 0


def test_accounts_are_remembered_apart(start: Start) -> None:
    accounts = (AccountOptions("a", "key-a", 1, 100), AccountOptions("b", "key-b", 2, 100))
    ask = start(accounts=accounts)
    Asking(ask.app, "key-a").data("goal/delete", id=301)
    again = start(accounts=accounts)
    counts = [Asking(again.app, key).data("goal/lists")["goals"]["count"] for key in ("key-a", "key-b")]
    assert counts == [5, 6]
