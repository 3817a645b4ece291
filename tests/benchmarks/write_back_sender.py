"""The child of `bench_write_back`: sends what an outbox holds, and reads it back, until it is done or killed.
Prints its figures.

Also asks for timelines as a sync does, for as long as it is told: what a push shares its budget with.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from marketing_api.client import Client, Connection, Secret
from marketing_api.operation import Call
from marketing_api.operations import contacts
from marketing_api.rate_limit import RateLimiter
from marketing_api.sandbox.options import DEFAULT_KEY
from write_back.item import State
from write_back.kinds import verify
from write_back.outbox.outbox import Outbox
from write_back.outbox.store import sender_lock
from write_back.sending import Sending


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("url")
    parser.add_argument("home", type=Path)
    parser.add_argument("--verify", default="none")
    parser.add_argument("--ask-for", type=float, default=0.0, help="seconds of asking instead of sending")
    chosen = parser.parse_args()
    connection = Connection("main", chosen.url, Secret(DEFAULT_KEY))
    with (
        tempfile.TemporaryDirectory() as spool,
        Client(
            connection, RateLimiter(chosen.home / "pace"), record=lambda exchange: None, spool=Path(spool)
        ) as client,
    ):
        if chosen.ask_for:
            print(
                json.dumps(
                    {"answered": sum(1 for _ in client.fetch_many(_timelines(client, chosen.ask_for)))}
                )
            )
            return
        with Outbox(chosen.home / "outbox.sqlite") as outbox, sender_lock(chosen.home, "main", wait_s=5):
            stopped = Sending(outbox, client, "main").run()
            push_ids = [push.push_id for push in outbox.pushes("main")]
            stopped = stopped or verify(outbox, client, push_ids, chosen.verify)
            counts = [outbox.counts(push_id) for push_id in push_ids]
            verified = sum(each.requests.get(State.VERIFIED, 0) for each in counts)
            drifted = sum(each.drifted for each in counts)
        print(
            json.dumps(
                {
                    "requests": client.statistics.requests,
                    "verified": verified,
                    "drifted": drifted,
                    "stopped": stopped,
                }
            )
        )


def _timelines(client: Client, seconds: float) -> Iterator[Call]:
    end = time.monotonic() + seconds
    listed = client.fetch(contacts.GETCONTACTBYEMAIL.bind(email="new0@example.com"))
    while time.monotonic() < end:
        yield listed.call


if __name__ == "__main__":
    main()
