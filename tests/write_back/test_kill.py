"""A sender that is killed, or whose outbox fails, loses nothing and repeats nothing."""

import signal
import subprocess
import sys
import time
from collections import Counter

import pytest

from tests.write_back.conftest import MakeDesk
from tests.write_back.desk import Desk
from tests.write_back.plans import a_plan, activity
from write_back.item import State
from write_back.outbox.outbox import Outbox
from write_back.outbox.store import OutboxFull

SENDER = """
import sys
from pathlib import Path
from marketing_api.client import Client, Connection, Secret
from marketing_api.rate_limit import RateLimiter
from marketing_api.sandbox.options import DEFAULT_KEY
from write_back.outbox.outbox import Outbox
from write_back.sending import Sending
from tests.write_back.desk import QUICK

home = Path(sys.argv[2])
connection = Connection("main", sys.argv[1], Secret(DEFAULT_KEY))
with Client(connection, RateLimiter(home / "pace"), record=lambda _: None, spool=home) as client, Outbox(home / "outbox.sqlite") as outbox:
    with outbox.hold_sender("main"):
        Sending(outbox, client, "main", policy=QUICK).send_all()
"""


@pytest.mark.slow
def test_three_kills_and_losses_in_between_leave_each_activity_once(make_desk: MakeDesk) -> None:
    chances = {"lost-answer": "0.05", "500-after": "0.05", "500-before": "0.05"}
    desk = make_desk(
        faults={name: f"{chance}@emailmarketing/addactivity" for name, chance in chances.items()},
        latency_ms=30.0,
    )
    ids = [int(one["id"]) for one in desk.people()]
    items = [activity(row, ids[row % len(ids)], f"Visit {row}") for row in range(200)]
    push_id = desk.outbox.enqueue_plan(a_plan(*items))
    for done in (30, 80, 130):
        child = subprocess.Popen([sys.executable, "-c", SENDER, desk.url, str(desk.outbox.path.parent)])
        while desk.outbox.count_states(push_id).requests.get(State.APPLIED, 0) < done:
            assert child.poll() in (None, 0)
            time.sleep(0.01)
        child.send_signal(signal.SIGKILL)
        child.wait()
    sent = desk.send()
    assert (sent.unknown, sent.planned) == (0, 0)
    assert desk.activities() == Counter((item.contact_id, item.params["description"]) for item in items)


@pytest.mark.parametrize("method", ["claim_item", "settle_item"])
def test_an_outbox_that_cannot_be_written_ends_the_sending_and_nothing_is_repeated(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    ids = [int(one["id"]) for one in desk.people()]
    items = [activity(row, ids[row], f"Visit {row}") for row in range(40)]
    calls = 0
    works = getattr(Outbox, method)

    def fail_from_the_tenth_on(*args: object, **more: object) -> object:
        nonlocal calls
        calls += 1
        if calls >= 10:
            raise OutboxFull("no room")
        return works(*args, **more)

    desk.outbox.enqueue_plan(a_plan(*items))
    with monkeypatch.context() as patch:
        patch.setattr(Outbox, method, fail_from_the_tenth_on)
        with pytest.raises(OutboxFull):
            desk.send()
    assert desk.asked("addactivity") < 30
    sent = desk.send()
    assert (sent.unknown, sent.planned) == (0, 0)
    assert desk.activities() == Counter((item.contact_id, item.params["description"]) for item in items)
