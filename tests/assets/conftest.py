"""Accounts of a service that is a function."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.assets.service import Account, FakeClient, Respond

OpenAccount = Callable[[Respond], Account]


@pytest.fixture
def open_account(
    tmp_path: Path, empty_tables: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[OpenAccount]:
    monkeypatch.setattr("assets.account_session.Client", FakeClient)
    shutil.copy(empty_tables, tmp_path)
    opened: list[Account] = []

    def open_account(respond: Respond) -> Account:
        """A run's account; one that was opened before has ended."""
        for earlier in opened:
            earlier.archive.close()
        opened.append(Account(tmp_path, respond).open("asset"))
        return opened[-1]

    yield open_account
    for account in opened:
        account.archive.close()
