"""Fixtures: what planning goes by, and a desk to send from."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from marketing_api.client import Client, Connection, Secret
from marketing_api.exchange import Exchange
from marketing_api.rate_limit import RateLimiter
from marketing_api.sandbox.options import DEFAULT_KEY
from tests.conftest import BEGAN_AT
from tests.dialects.server import Options, serve
from tests.fixtures import *  # noqa: F403 - the fixtures that packages above the warehouse share
from tests.write_back.desk import Desk
from tests.write_back.planner import make_warehouse, open_known
from warehouse.connection import open_database
from write_back.account_state import Known
from write_back.outbox.outbox import Outbox

MakeDesk = Callable[..., Desk]
#: Its clock stands still, so that one account is copied for all tests.
_STANDING = {"contacts": 120, "rate_limit": 0, "now": BEGAN_AT}


@pytest.fixture
def make_desk(tmp_path: Path) -> Iterator[MakeDesk]:
    """Call it with options of the sandbox."""
    with ExitStack() as stack:

        def make(**options: Any) -> Desk:
            url = stack.enter_context(serve(Options(**_STANDING | options)))
            recorded: list[Exchange] = []
            connection = Connection("main", url, Secret(DEFAULT_KEY))
            client = Client(
                connection,
                RateLimiter(tmp_path / "pace"),
                record=recorded.append,
                spool=tmp_path,
                first_pause=0.01,
            )
            stack.enter_context(client)
            return Desk(url, client, stack.enter_context(Outbox(tmp_path / "outbox.sqlite")), recorded)

        yield make


@pytest.fixture
def desk(make_desk: MakeDesk) -> Desk:
    return make_desk()


@pytest.fixture(scope="session")
def small_warehouse(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three lists and seven people; nobody writes to it."""
    return make_warehouse(tmp_path_factory.mktemp("known") / "warehouse.duckdb")


@pytest.fixture(scope="session")
def known(small_warehouse: Path) -> Iterator[Known]:
    """What it knows. The file stays open, since opening it takes longer than asking it."""
    with open_database(small_warehouse, read_only=True):
        yield open_known(small_warehouse)
