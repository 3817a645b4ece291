"""Everything that sending needs, and a look behind the service's counter."""

import json
import time
import urllib.request
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from marketing_api.client import Client
from marketing_api.exchange import Exchange
from marketing_api.operations import contacts, find
from marketing_api.records.shapes import items_of
from tests.waiting import HANGS_S
from tests.write_back.plans import a_plan
from write_back.item import Item, Plan, RetryPolicy, State
from write_back.kinds import verify_pushes
from write_back.outbox.outbox import Outbox
from write_back.sending import Sending

#: As in earnest, a hundred times faster.
QUICK = RetryPolicy(
    workers=8,
    attempts=10,
    timeout_s=HANGS_S,
    first_look_s=0.05,
    last_look_s=0.15,
    repeat_s=0.0001,
    verify_wait_s=2.0,
    verify_every_s=0.1,
    unknown_in_row=1000,
)


@dataclass(frozen=True)
class Sent:
    """What became of the requests that were open."""

    applied: int
    rejected: int
    unknown: int
    planned: int
    requests: int  # everything that was sent, repeats and look-ups included
    stopped: str | None


@dataclass(frozen=True)
class Verified:
    """What reading back proved, in requests of the outbox; `hidden` have fields that are not shown."""

    verified: int
    drifted: int
    hidden: int
    requests: int
    stopped: str | None

    @property
    def checked(self) -> int:
        return self.verified + self.drifted


@dataclass
class Desk:
    """A sandbox without a limit, a client of it, an outbox, and the truth."""

    url: str
    client: Client
    outbox: Outbox
    recorded: list[Exchange] = field(default_factory=list)

    def push(self, *items: Item, **options: Any) -> tuple[int, Sent]:
        push_id = self.outbox.enqueue_plan(a_plan(*items))
        return push_id, self.send(**options)

    def send(self, **options: Any) -> Sent:
        before, open_ = self.client.statistics.requests, self.outbox.list_open("main")
        with self.outbox.hold_sender("main"):
            stopped = Sending(self.outbox, self.client, "main", **({"policy": QUICK} | options)).send_all()
        states = {entry.item_id: entry.state for entry in self.outbox.changed_since(-1)}
        now = Counter(states[entry.item_id] for entry in open_)
        unknown = now[State.UNKNOWN] + now[State.SENDING]
        requests = self.client.statistics.requests - before
        return Sent(now[State.APPLIED], now[State.REJECTED], unknown, now[State.PLANNED], requests, stopped)

    def verify(self, *push_ids: int, how: str = "sample", **options: Any) -> Verified:
        before, revision = self.client.statistics.requests, self.outbox.revision
        stopped = verify_pushes(self.outbox, self.client, push_ids, how, **({"policy": QUICK} | options))
        read = list(self.outbox.changed_since(revision))
        verified = [entry for entry in read if entry.state is State.VERIFIED]
        hidden = sum((entry.message or "").startswith("not shown") for entry in verified)
        return Verified(
            len(verified),
            sum(bool(entry.drift) for entry in read),
            hidden,
            self.client.statistics.requests - before,
            stopped,
        )

    def control(self, path: str, **params: Any) -> Any:
        query = "&".join(f"{name}={value}" for name, value in params.items())
        with urllib.request.urlopen(f"{self.url.removesuffix('/1')}/sandbox/{path}?{query}") as answer:
            return json.load(answer)

    def written(self) -> dict[str, Any]:
        """Contact id → what writes made of it, once nothing is queued any more."""
        while (told := self.control("written"))["queued"]:
            time.sleep(0.05)
        return dict(told["contacts"])

    def activities(self) -> Counter[tuple[int, str]]:
        return Counter(
            (int(one), text) for one, each in self.written().items() if each for _, text in each["activities"]
        )

    def tags(self) -> dict[str, list[str]]:
        return {each["email"]: each["tags"] for each in self.written().values() if each}

    def people(self, list_id: int = 1801) -> list[dict[str, Any]]:
        answer = self.client.fetch(contacts.GETCONTACTS.bind(listid=list_id))
        return list(items_of(answer.envelope.decode_payload(answer.call.operation)))

    def asked(self, operation: str) -> int:
        return sum(
            exchange.call.operation.name == f"emailmarketing/{operation}" for exchange in self.recorded
        )

    def plan(self, *items: Item) -> Plan:
        return a_plan(*items)

    def control_write(self, operation: str, **params: Any) -> None:
        """Somebody else changes something."""
        self.client.write(find(f"emailmarketing/{operation}").bind(**params))
