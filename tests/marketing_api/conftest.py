"""A client of a scripted server, and what it recorded."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from marketing_api.client import Client, Connection, Secret
from marketing_api.exchange import Exchange
from marketing_api.rate_limit import RateLimiter
from tests.marketing_api.scripted_server import Asked, Reply, ScriptedServer, ok

#: Characters that are spelled differently in addresses and in JSON.
KEY = 'k3y/of "us"&them'


@dataclass
class Bench:
    """A server, a client of it, and the exchanges that the client recorded."""

    server: ScriptedServer
    client: Client
    recorded: list[Exchange] = field(default_factory=list)

    @property
    def asked(self) -> list[Asked]:
        return self.server.asked


MakeBench = Callable[..., Bench]


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[MakeBench]:
    """Call it with replies in order (the last one is repeated), or with a function from request to reply."""
    with ExitStack() as stack:

        def make(*replies: Reply | Callable[[Asked], Reply], url: str = "", **options: Any) -> Bench:
            rest = list(replies or (ok(),))

            def response(asked: Asked) -> Reply:
                reply = rest.pop(0) if len(rest) > 1 else rest[0]
                return reply(asked) if callable(reply) else reply

            server = stack.enter_context(ScriptedServer(response))
            recorded: list[Exchange] = []
            connection = Connection("main", url or server.url, Secret(KEY))
            chosen: dict[str, Any] = {
                "record": recorded.append,
                "spool": tmp_path / "spool",
                "first_pause": 0.01,
            } | options
            client = stack.enter_context(
                Client(connection, RateLimiter(tmp_path / f"pace-{id(server)}"), **chosen)
            )
            return Bench(server, client, recorded)

        yield make
