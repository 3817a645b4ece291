"""A sandbox as a test sees it: its address, what it was asked, and how it is told to misbehave."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from email.utils import formatdate
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest
import requests
from msgspec.structs import replace as replace_struct

from home.identity import FILE, identity_of
from marketing_api.sandbox.app import RULES, App, Rule
from marketing_api.sandbox.responses import Request, Response
from marketing_api.sandbox.rules import CheckedCall
from tests import warm
from tests.waiting import HANGS_S

KEY = "sandbox-key"


@dataclass(frozen=True)
class Sandbox:
    """`url` up to and including `/1`."""

    url: str

    def control(self, path: str, **values: object) -> Any:
        reply = requests.get(f"{self.url.removesuffix('/1')}/sandbox/{path}", params=values, timeout=HANGS_S)  # type: ignore[arg-type]
        reply.raise_for_status()
        return reply.json()

    @property
    def count(self) -> int:
        """Requests received so far."""
        return int(self.control("log", limit=0)["requests"])

    def asked(self, since: int = 0) -> list[dict[str, Any]]:
        """The requests received after number `since`, oldest first: operation, params, status, outcome."""
        return list(self.control("log", since=since, limit=100_000)["items"])


def move_account(home: Path, url: str) -> None:
    """What a home was copied with is at `url` now: a sandbox of another test has another port."""
    identity = identity_of(home)
    moved = {name: replace_struct(owner, address=url) for name, owner in identity.accounts.items()}
    (home / FILE).write_bytes(msgspec.json.encode(replace_struct(identity, accounts=moved)))


class Dated:
    """Responses of a sandbox in this process with the `Date` of its own clock, while `is_on`: it is their day
    for who asks, too. To be put in the place of `App.respond`."""

    is_on = True
    respond = App.respond

    @staticmethod
    def dated(app: App, request: Request, arrived: float) -> Response:
        reply = Dated.respond(app, request, arrived)
        now = app.world.now()
        return (
            replace(reply, headers=[*reply.headers, ("date", formatdate(now, usegmt=True))])
            if Dated.is_on
            else reply
        )


#: Is given a call and its rule, and returns the payload: what the rule would, or otherwise.
Hook = Callable[[CheckedCall, Rule], Any]


def put_in(monkeypatch: pytest.MonkeyPatch, hook: Hook, *operations: str) -> None:
    """Let `hook` respond to these operations, or to all, in the sandboxes of this process."""
    for name in operations or list(RULES):
        monkeypatch.setitem(RULES, name, partial(_hooked, hook, RULES[name]))


def _hooked(hook: Hook, rule: Rule, call: CheckedCall) -> Any:
    return hook(call, rule)


@contextmanager
def spawned(*arguments: str) -> Iterator[str]:
    """A sandbox in a process of its own; yields its base address."""
    child = warm.sandbox(*arguments)
    try:
        line = child.stdout.readline()
        assert line, f"the sandbox did not start: {child.communicate()[1]}"
        yield line.split()[-1]
    finally:
        child.terminate()
        child.communicate()
