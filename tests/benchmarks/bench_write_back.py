"""Sends 2,000 items of each kind through losses, a lagging queue and three kills, and counts the truth of the
service; then the pace.

    python -m tests.benchmarks.bench_write_back [--items 2000] [--rate 150] [--only rough pace shared]

rough    the command itself, with 3 % lost answers, 2 % 500 after the effect, 2 % 500 before it, 1 % resets, effects 3 s late, and
         three SIGKILLs. Goals: every activity exactly once, every contact and tag as intended, nothing sent by a second push.
pace     15 requests a second, latency 120/600 ms, no faults, a sample read back. Goals: at least 97 % of the limit in steady
         state, at most 10 % more requests than rows.
shared   a push and a sync at once under 15 requests a second. Goals: each at least a third, at most 0.5 % refused.
Exit code 1 when a goal is missed.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tests.dialects.server import Options, serve
from tests.pipelines.running import Ran
from tests.pipelines.running import finish as finish_command
from tests.pipelines.running import start_cold as start
from tests.pipelines.sandboxes import Sandbox
from tests.write_back.plans import a_plan, activity, contact, tag
from write_back.item import Item, State
from write_back.kinds import ACTIVITIES, CONTACTS, TAGS, Kind
from write_back.outbox.outbox import Outbox

_WRITES = (
    "emailmarketing/addactivity,emailmarketing/addtag,emailmarketing/removetag,emailmarketing/synccontact"
)
FAULTS = {"lost-answer": "0.03", "500-after": "0.02", "500-before": "0.02", "reset": "0.01"}
KILLS = 3
LATE_S = 3
LIST = 1801


def control(url: str, path: str) -> Any:
    with urllib.request.urlopen(f"{url.removesuffix('/1')}/sandbox/{path}") as answer:
        return json.load(answer)


def people(url: str) -> list[dict[str, Any]]:
    with urllib.request.urlopen(
        f"{url}/emailmarketing/getcontacts.json?key=sandbox-key&listid={LIST}"
    ) as answer:
        return list(json.load(answer)["response"]["data"]["contacts"]["items"])


def written(url: str) -> list[dict[str, Any]]:
    """Once nothing is queued any more."""
    while (told := control(url, "written"))["queued"]:
        time.sleep(0.2)
    return [{"id": int(contact_id), **each} for contact_id, each in told["contacts"].items() if each]


def sender(url: str, home: Path, *more: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "tests.benchmarks.write_back_sender", url, str(home), *more]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def run(home: Path, service: Sandbox, *words: str) -> Ran:
    return finish_command(start(home, service, *words), policy=600)


def finish(child: subprocess.Popen[str]) -> dict[str, Any]:
    text, _ = child.communicate()
    if child.returncode:
        raise RuntimeError(f"the sender failed with {child.returncode}")
    return dict(json.loads(text))


def kill_at(child: subprocess.Popen[str], home: Path, kill: int) -> None:
    """SIGKILL when so much of everything is done."""
    while child.poll() is None:
        if (home / "outbox.sqlite").exists():
            with Outbox(home / "outbox.sqlite") as outbox:
                counts = [outbox.counts(push.push_id).requests for push in outbox.pushes()]
            done = sum(each.get(State.APPLIED, 0) for each in counts)
            if done > sum(sum(each.values()) for each in counts) * (kill + 1) // (KILLS + 1):
                child.send_signal(signal.SIGKILL)
                child.communicate()
                return
        time.sleep(0.1)
    raise RuntimeError(f"the push ended before it could be killed: {child.communicate()}")


def items_of(kind: Kind, count: int, there: Sequence[dict[str, Any]]) -> list[Item]:
    if kind is ACTIVITIES:
        return [
            activity(row, int(there[row % len(there)]["id"]), f"Visit number {row}") for row in range(count)
        ]
    if kind is CONTACTS:
        return [
            contact(row, f"new{row}@example.com", LIST, fields={"9100": f"Name {row}"})
            for row in range(count)
        ]
    return [
        tag(row, there[row % len(there)]["email"], name=f"tag{row // len(there)}") for row in range(count)
    ]


def wrong(kind: Kind, items: Sequence[Item], truth: Sequence[dict[str, Any]]) -> Counter[str]:
    """What is not as intended, by kind of wrong."""
    found: Counter[str] = Counter()
    if kind is ACTIVITIES:
        shown = Counter((each["id"], text) for each in truth for _, text in each["activities"])
        meant = Counter((item.contact_id, item.params["description"]) for item in items)
        return Counter({"duplicates": (shown - meant).total(), "missing": (meant - shown).total()})
    if kind is CONTACTS:
        last = {item.email: item.params["fields[9100]"] for item in items}
        shown_names = {
            each["email"]: each["values"].get("9100") for each in truth if each["email"].startswith("new")
        }
        found["duplicates"] = sum(each["email"].startswith("new") for each in truth) - len(shown_names)
        found["wrong"] = sum(shown_names.get(email) != name for email, name in last.items())
        return found
    meant_tags: dict[tuple[str | None, str], bool] = {
        (item.email, item.params["tagname"]): "addtag" in item.operation for item in items
    }
    shown_tags = {(each["email"], name) for each in truth for name in each["tags"]}
    found["wrong"] = sum((key in shown_tags) is not is_there for key, is_there in meant_tags.items())
    return found


def write_file(kind: Kind, items: Sequence[Item], path: Path) -> None:
    """What a person would have, from which the command makes these items."""
    with path.open("w", newline="") as file:
        out = csv.writer(file)
        match kind:
            case "activities":
                out.writerow(["contact_id", "description", "datetime"])
                out.writerows(
                    [item.contact_id, item.params["description"], item.params["datetime"]] for item in items
                )
            case "contacts":
                last = {item.email: item.params["fields[9100]"] for item in items}
                out.writerow(["email", "list_id", "status", "9100"])
                out.writerows([email, LIST, "Active", name] for email, name in last.items())
            case _:
                out.writerow(["email", "tag", "action"])
                out.writerows(
                    [
                        item.email,
                        item.params["tagname"],
                        item.operation.rpartition("/")[2].removesuffix("tag"),
                    ]
                    for item in items
                )


def rough(kind: Kind, count: int, rate: int) -> bool:
    """The real command; after each kill the same one again."""
    faults = {name: f"{chance}@{_WRITES}" for name, chance in FAULTS.items()}
    switches = {"sync-delay": str(LATE_S), "activity-delay": str(LATE_S)}
    options = Options(
        contacts=5 * count, rate_limit=rate, faults=faults, switches=switches, latency_ms=(40.0, 200.0)
    )
    with tempfile.TemporaryDirectory() as folder, serve(options) as url:
        home, service, file = Path(folder) / "home", Sandbox(url), Path(folder) / "rows.csv"
        assert run(home, service, "sync", "--only", "business", "lists", "list_fields", "contacts").code == 0
        items = items_of(kind, count, people(url))
        write_file(kind, items, file)
        words = ("push", kind.value, "--from", str(file), "--apply")
        before, began = service.count, time.monotonic()
        for kill in range(KILLS):
            kill_at(start(home, service, *words), home, kill)
        ended = run(home, service, *words)
        seconds, requests = time.monotonic() - began, service.count - before
        not_right = wrong(kind, items, written(url))
        again = run(home, service, *words)
        not_right["sent by a second push"] = service.count - before - requests
        with Outbox(home / "outbox.sqlite") as outbox:
            sent = [
                entry
                for push in outbox.pushes()
                for entry in outbox.items(push.push_id)
                if entry.operation is not None
            ]
    left = Counter(entry.state.value for entry in sent if not entry.is_done)
    is_right = not any(not_right.values()) and not left and ended.code == again.code == 0
    told = ", ".join(f"{number} {name}" for name, number in not_right.items())
    print(
        f"{'ok  ' if is_right else 'MISS'} rough {kind}: {told}; {KILLS} kills, {len(sent)} requests meant, "
        f"{requests} used "
        f"= {requests / len(sent):.3f} each, left {dict(left)}, exits {ended.code} {again.code}, "
        f"{seconds:.0f} s "
        f"(load {os.getloadavg()[0]:.1f})",
        flush=True,
    )
    return is_right


def log(url: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    while page := control(url, f"log?since={found[-1]['number'] if found else 0}")["items"]:
        found += page
    return found


def pace(count: int) -> bool:
    with (
        tempfile.TemporaryDirectory() as folder,
        serve(Options(contacts=900, latency_ms=(120.0, 600.0), jitter_ms=(5.0, 20.0))) as url,
    ):
        with Outbox(Path(folder) / "outbox.sqlite") as outbox:
            outbox.enqueue(a_plan(*items_of(CONTACTS, count, [])))
            told = finish(sender(url, Path(folder), "--verify", "sample"))
        asked = [entry for entry in log(url) if entry["operation"] == "emailmarketing/synccontact"]
    steady = asked[30:]  # the limit is learnt from the first answers
    rate = (len(steady) - 1) / (steady[-1]["arrived"] - steady[0]["arrived"])
    refused = sum(entry["status"] == 429 for entry in asked)
    used = told["requests"] / count
    is_right = rate >= 0.97 * 15 and used <= 1.10 and not told["drifted"]
    print(
        f"{'ok  ' if is_right else 'MISS'} pace: {count} contacts, {rate:.2f}/s = {rate / 15:.1%} of the "
        f"limit, {refused} refused, "
        f"{used:.3f} requests per row with {told['verified'] + told['drifted']} read back (load "
        f"{os.getloadavg()[0]:.1f})",
        flush=True,
    )
    return is_right


def shared(seconds: float) -> bool:
    with (
        tempfile.TemporaryDirectory() as folder,
        serve(Options(contacts=900, latency_ms=(120.0, 600.0), jitter_ms=(5.0, 20.0))) as url,
    ):
        home = Path(folder)
        with Outbox(home / "outbox.sqlite") as outbox:
            outbox.enqueue(a_plan(*items_of(CONTACTS, round(15 * seconds), [])))
            pusher = sender(url, home)
            time.sleep(3)
            finish(sender(url, home, "--ask-for", str(seconds)))
            pusher.terminate()
            pusher.communicate()
        asked = log(url)
    reads = [entry for entry in asked if entry["operation"] == "emailmarketing/getcontactbyemail"]
    begin, end = reads[0]["arrived"] + 3, reads[-1]["arrived"] - 3  # while both were at work
    both = [entry for entry in asked if begin <= entry["arrived"] <= end]
    refused = sum(entry["status"] == 429 for entry in both)
    share = sum(entry["operation"] == "emailmarketing/synccontact" for entry in both) / len(both)
    is_right: bool = 1 / 3 <= share <= 2 / 3 and refused <= 0.005 * len(both)
    print(
        f"{'ok  ' if is_right else 'MISS'} shared: {len(both) / (end - begin):.2f}/s together, the push "
        f"{share:.1%}, "
        f"the sync {1 - share:.1%}, {refused} refused of {len(both)} (load {os.getloadavg()[0]:.1f})",
        flush=True,
    )
    return is_right


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--items", type=int, default=2000)
    parser.add_argument("--rate", type=int, default=150, help="limit of the rough runs, requests a second")
    parser.add_argument(
        "--only", nargs="+", choices=("rough", "pace", "shared"), default=("rough", "pace", "shared")
    )
    chosen = parser.parse_args()
    parts: dict[str, list[Callable[[], bool]]] = {
        "rough": [
            lambda kind=kind: rough(kind, chosen.items, chosen.rate) for kind in (ACTIVITIES, CONTACTS, TAGS)
        ],  # type: ignore[misc]
        "pace": [lambda: pace(chosen.items)],
        "shared": [lambda: shared(60.0)],
    }
    reached = [part() for name in chosen.only for part in parts[name]]
    return 0 if all(reached) else 1


if __name__ == "__main__":
    sys.exit(main())
