"""A sample of many accounts: one that does not even open holds up no other."""

from __future__ import annotations

from pathlib import Path

import pytest

from assets.sources import SOURCE_ASSETS
from home.folder import prepare_home
from home.settings import Settings
from marketing_api.client import Connection, Secret
from pipelines.reading import open_reader
from tests.attack.hostile import served
from tests.dialects.server import serve
from tests.fixtures import STANDING
from tests.pipelines.sandboxes import KEY
from tests.waiting import wait_until


@pytest.mark.slow
def test_an_account_that_does_not_open_holds_up_no_other(tmp_path: Path) -> None:
    home = tmp_path / "home"
    prepare_home(home)
    with serve(STANDING) as url, served("accepts and says nothing", 0, 1.0) as (silent, _):
        accounts = (Connection("good", url, Secret(KEY)), Connection("silent", silent, Secret(KEY)))
        with open_reader(Settings(home, accounts), [SOURCE_ASSETS["lists"]]) as reader:
            reader.begin_reading()
            wait_until(lambda: (good := reader.results.get(("lists", "good"))) and good.reports)
            assert not reader.results["lists", "silent"].reports
            assert not next(
                session for session in reader.sessions if session.account == "silent"
            ).opened.is_set()
