"""Kills a sync at random moments, lets it end, and compares with one that nobody disturbed.

    python -m tests.benchmarks.bench_kill [--kills 30] [--contacts 300] [--seed 1]

Goals: no row differs; what is asked again is at most what was under way and what came in the last second
before each kill, all kills together 5 % of the night; the archive alone makes the same warehouse. Exit code 1
when one is missed."""

from __future__ import annotations

import argparse
import datetime as dt
import random
import sys
import tempfile
import time
from pathlib import Path

from marketing_api.sandbox.server import spawn
from tests.pipelines.running import finish
from tests.pipelines.running import start_cold as start
from tests.pipelines.sandboxes import Sandbox
from tests.pipelines.tables import differing, rows, source

RATE = 15  # as the service has it: the last second is that many requests
UNDER_WAY = 32
LONGEST_S = 12.0


def killed(home: Path, service: Sandbox, kills: int, chance: random.Random) -> int:
    """A night with so many kills; how many of them met a run that was still at work."""
    met = 0
    for _ in range(kills):
        process = start(home, service, "sync")
        time.sleep(chance.uniform(0.3, LONGEST_S))
        met += process.poll() is None
        process.kill()
        process.communicate()
    ended = finish(start(home, service, "sync"), patience=600)
    assert ended.code == 0, ended.text
    return met


def asked_again(service: Sandbox) -> int:
    """Whole answers to a question beyond the first."""
    whole = [
        (entry["operation"], str(entry["params"])) for entry in service.asked() if entry["outcome"] == "ok"
    ]
    return len(whole) - len(set(whole))


def prove(folder: Path, kills: int, contacts: int, seed: int) -> bool:
    now = dt.datetime.now(dt.UTC).strftime("%Y-%m-%dT%H:%M")
    account = ("--contacts", str(contacts), "--now", now)
    with (
        spawn(*account, "--rate-limit", "0") as calm_url,
        spawn(*account, "--rate-limit", str(RATE)) as rough_url,
    ):
        calm, rough = Sandbox(calm_url), Sandbox(rough_url)
        assert finish(start(folder / "calm", calm, "sync"), patience=600).code == 0
        met = killed(folder / "rough", rough, kills, random.Random(seed))
        again, whole = asked_again(rough), calm.count
    lost = differing(source(folder / "calm"), source(folder / "rough")) - {
        "sentiment_totals"
    }  # keyed by the days asked for
    before = {schema: rows(folder / "rough", schema) for schema in ("source", "sync")}
    assert finish(start(folder / "rough", None, "rebuild"), patience=600).code == 0
    rebuilt = {schema: rows(folder / "rough", schema) for schema in before}
    changed = set().union(*(differing(before[schema], rebuilt[schema]) for schema in before))
    print(f"kills                   {met} of {kills} while a run was at work")
    print(f"requests of a night     {whole}")
    print(
        f"asked again             {again} = {again / max(met, 1):.1f} a kill (goal {RATE + UNDER_WAY}), "
        f"{100 * again / whole:.1f} %"
    )
    print(f"tables that differ      {', '.join(sorted(lost)) or 'none'} (goal none)")
    print(f"differ after a rebuild  {', '.join(sorted(changed)) or 'none'} (goal none)")
    return not lost and not changed and again <= met * (RATE + UNDER_WAY)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=30)
    parser.add_argument("--contacts", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        return 0 if prove(Path(folder), arguments.kills, arguments.contacts, arguments.seed) else 1


if __name__ == "__main__":
    sys.exit(main())
