"""Everything at once on one home; and twenty accounts of which one is hostile.

At once: two syncs, `status` again and again, a push of activities, publish, rebuild and report, and analysts
who query the published file. Each command ends with 0, or with 1 and a sentence that says who is waited for;
no activity is lost or written twice; afterwards the tables equal those of a home that was alone. Twenty
accounts: each of the others is whole, and read within 1.2 x its time without the hostile one (accounts are
limited to a few requests a second, so that their limits and not the processor decide)."""

from __future__ import annotations

import datetime as dt
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import duckdb

from tests.attack.hostile import served
from tests.dialects.server import spawn
from tests.pipelines.running import Ran, finish, start
from tests.pipelines.sandboxes import Sandbox
from tests.pipelines.tables import differing, source
from warehouse.publish import published_path

#: The programs have the machine's clock: a service of another day leaves days out.
NOW = dt.datetime.now(dt.UTC).isoformat(timespec="minutes")
#: Times of its own time that an account may take when another is hostile.
MOST = 1.2
#: A hostile account in a process whose patience is so much shorter.
_FASTER = """
import sys
from tests.attack.hostile import faster
from marketing_api.operations import ALL
from marketing_sync import cli
factor = float(sys.argv.pop(1))
for operation in ALL.values():
    object.__setattr__(operation, "timeout", operation.timeout / factor)
with faster(factor):
    sys.exit(cli.main(sys.argv[1:]))
"""


# --- everything at once ---


@dataclass
class Crowd:
    """What the commands of one round did. `worst`: seconds, by the first word of the command."""

    sandbox: Sandbox
    home: Path
    ran: list[tuple[tuple[str, ...], Ran]] = field(default_factory=list)
    worst: Counter[str] = field(default_factory=Counter)
    queries: int = 0

    def run(self, *words: str) -> Ran:
        began = time.monotonic()
        ran = finish(start(self.home, self.sandbox, *words), 900)
        self.worst[words[0]] = max(self.worst[words[0]], round(time.monotonic() - began))
        self.ran.append((words, ran))
        if words != ("status",):
            last = (ran.text.strip().splitlines() or ["–"])[-1]
            print(
                f"{' '.join(words)[:40]}: {ran.code} after {time.monotonic() - began:.0f} s: {last[:200]}",
                file=sys.stderr,
                flush=True,
            )
        return ran

    def analyse(self, stop: threading.Event) -> None:
        """Open the published file, count, look at it again a little later through the same connection, close
        it."""
        while not stop.wait(0.1):
            with duckdb.connect(str(published_path(self.home)), read_only=True) as connection:
                tables = connection.execute(
                    "select schema_name || '.' || table_name from duckdb_tables() where schema_name in "
                    "('source', 'marts')"
                ).fetchall()
                counts = [connection.execute(f"select count(*) from {name}").fetchone() for (name,) in tables]
                stop.wait(0.5)
                assert counts == [
                    connection.execute(f"select count(*) from {name}").fetchone() for (name,) in tables
                ]
            self.queries += 1


#: A rebuild leaves the models to the next sync: who publishes in between is told so.
_CLEAR = ("waiting for", "in use by", "under way", "has the warehouse", "nothing was published")


def understood(ran: Ran) -> bool:
    """0, or 1 with a sentence of ours that names who has the home, or what to run first."""
    is_clear = ran.code == 1 and any(said in ran.text for said in _CLEAR)
    return "Traceback" not in ran.text and (ran.code == 0 or is_clear)


def at_once(folder: Path, *, contacts: int, statuses: int, rate: int, pushes: int) -> str:
    """One round; AssertionError when something was hurt."""
    with (
        spawn("--rate-limit", str(rate * 20), "--contacts", str(contacts), "--now", NOW) as url,
        ExitStack() as stack,
    ):
        crowd = Crowd(Sandbox(url), folder / "crowd")
        assert crowd.run("sync").code == 0, crowd.ran[-1][1].text[-2000:]
        with duckdb.connect(str(crowd.home / "warehouse.duckdb"), read_only=True) as connection:
            ids = connection.execute(
                "select distinct contact_id from source.contacts order by 1 limit ?", [pushes]
            ).fetchall()
        file = folder / "activities.csv"
        file.write_text(
            "contact_id,description,datetime\n"
            + "".join(f"{id_},crowd {id_},2026-11-20 10:00\n" for (id_,) in ids)
        )
        stop = threading.Event()
        stack.callback(stop.set)
        push = ("push", "activities", "--from", str(file), "--apply")
        commands = [
            ("sync", "--all"),
            push,
            ("publish",),
            ("rebuild",),
            ("report",),
            ("sync", "--all"),
            *[("status",)] * statuses,
        ]
        with ThreadPoolExecutor(5) as analysts, ThreadPoolExecutor(8) as many:
            asking = [analysts.submit(crowd.analyse, stop) for _ in range(5)]
            try:
                list(many.map(lambda words: crowd.run(*words), commands))
            finally:
                stop.set()
            for each in asking:
                each.result()
        last = crowd.run("sync", "--all")
        assert last.code == 0, last.text[-2000:]
        alone = Crowd(crowd.sandbox, folder / "alone")
        assert alone.run("sync").code == 0, alone.ran[-1][1].text[-2000:]
        assert differing(source(crowd.home), source(alone.home)) <= {
            "sentiment_totals"
        }  # a row for each range that was asked for
        check_once(alone.home, [id_ for (id_,) in ids])
        bad = [(words, ran) for words, ran in crowd.ran if not understood(ran)]
        assert not bad, "\n".join(
            f"{' '.join(words)}: {ran.code}\n{ran.text[-1500:]}" for words, ran in bad[:3]
        )
        waited = Counter(f"{words[0]}: exit {ran.code}" for words, ran in crowd.ran)
        longest = ", ".join(f"{name} {seconds} s" for name, seconds in sorted(crowd.worst.items()))
        return (
            f"commands {dict(waited)}; longest {longest}; {crowd.queries:,} looks of 5 "
            f"analysts; {len(ids)} "
            "activities once each"
        )


def check_once(home: Path, ids: Sequence[int]) -> None:
    """Every pushed activity is in its timeline, and once."""
    with duckdb.connect(str(home / "warehouse.duckdb"), read_only=True) as connection:
        found = connection.execute(
            "select contact_id, count(*) from source.timeline_events "
            "where snippet like '%crowd %' or details::varchar like '%crowd %' group by 1"
        ).fetchall()
    assert dict(found) == dict.fromkeys(ids, 1), (
        f"{len(found)} of {len(ids)} contacts have theirs: {found[:5]}"
    )


# --- many accounts, one of them hostile ---


@contextmanager
def accounts(folder: Path, url: str, count: int, hostile: str) -> Iterator[dict[str, str]]:
    """`accounts.toml` and the keys of so many accounts, and one more at the address `hostile` if there is
    one."""
    folder.mkdir(parents=True, exist_ok=True)
    tables = [f'[accounts.a{number}]\nurl = "{url}"\nkey_env = "CROWD_{number}"\n' for number in range(count)]
    tables += [f'[accounts.hostile]\nurl = "{hostile}"\nkey_env = "CROWD_X"\n'] if hostile else []
    (folder / "accounts.toml").write_text("".join(tables))
    kept = {name: value for name, value in os.environ.items() if not name.startswith("MARKETING_")}
    keys = {f"CROWD_{number}": f"key-{number}" for number in range(count)} | {"CROWD_X": "hostile-key"}
    root = str(Path(__file__).parents[2])
    yield kept | keys | {"MARKETING_HOME": str(folder / "home"), "PYTHONPATH": root}


@dataclass(frozen=True)
class Night:
    """`last`: by account, seconds from the first answer of all to its own last one."""

    code: int
    text: str
    last: dict[str, float]


def night(
    folder: Path, *, count: int, contacts: int, limit: int, hostile: str = "", factor: float = 20.0
) -> Night:
    words = [
        word
        for number in range(count)
        for word in ("--account", f"a{number}=key-{number}:{number}:{contacts}")
    ]
    with (
        spawn(*words, "--rate-limit", str(limit), "--now", NOW) as url,
        accounts(folder, url, count, hostile) as environment,
    ):
        command = [sys.executable, "-c", _FASTER, str(factor), "sync", "--reads-only"]
        ran = subprocess.run(
            command, cwd=folder, env=environment, text=True, capture_output=True, timeout=900, check=False
        )
        log = [entry for entry in Sandbox(url).asked() if entry["account"]]
    assert log, ran.stderr[-2000:]
    began = min(entry["arrived"] for entry in log)
    last: dict[str, float] = {}
    for entry in log:
        last[entry["account"]] = max(last.get(entry["account"], 0.0), entry["arrived"] - began)
    return Night(ran.returncode, ran.stdout + ran.stderr, last)


def judge_others(folder: Path, met: Night, count: int, contacts: int) -> None:
    """The others are whole, and the hostile one is named."""
    with duckdb.connect(str(folder / "home" / "warehouse.duckdb"), read_only=True) as connection:
        read = dict(
            connection.execute(
                "select account, count(timeline_asked_at) from sync.contact_coverage group by 1"
            ).fetchall()
        )
    assert read == {f"a{number}": contacts for number in range(count)}, read
    assert met.code == 1, met.text[-1500:]
    _, _, reported = met.text.partition("not read")
    named = {word for word in reported.replace(":", " ").split() if word == "hostile" or word in met.last}
    assert named == {"hostile"}, reported[:1500]


def many_accounts(
    folder: Path,
    behaviours: Sequence[str],
    *,
    count: int,
    contacts: int,
    limit: int,
    factor: float = 20.0,
    most: float = MOST,
) -> str:
    calm = night(folder / "calm", count=count, contacts=contacts, limit=limit, factor=factor)
    assert calm.code == 0, calm.text[-2000:]
    lines = ["| hostile account | the others end after (without it) | worst of them |", "|---|---:|---:|"]
    for number, name in enumerate(behaviours):
        place = folder / f"with-{number}"
        with served(name, 1, factor) as (url, _):
            met = night(place, count=count, contacts=contacts, limit=limit, hostile=url, factor=factor)
        judge_others(place, met, count, contacts)
        worst = max(met.last[account] / calm.last[account] for account in calm.last)
        assert worst <= most, f"{name}: an account took {worst:.2f} x its time"
        lines.append(
            f"| {name} | {max(met.last.values()):.1f} s ({max(calm.last.values()):.1f} s) | {worst:.2f} x |"
        )
    return "\n".join(lines)


#: One of each kind.
KINDS = (
    "accepts and says nothing",
    "429, Retry-After ten years",
    "headers, a byte in 10 s",
    "endless body, 20 kB a second",
    "a connect that hangs",
)


def attack(minutes: float, seed: int) -> str:
    """One round of everything at once, and of twenty accounts with each kind of hostile one while there is
    time."""
    del seed  # nothing is drawn: threads and processes meet differently every time
    end = time.monotonic() + 60 * minutes
    with tempfile.TemporaryDirectory() as place:
        found = [at_once(Path(place), contacts=300, statuses=200, rate=1, pushes=40)]
        for number, name in enumerate(KINDS):
            if number == 0 or time.monotonic() < end:
                found.append(many_accounts(Path(place) / str(number), [name], count=20, contacts=40, limit=3))
    return "\n\n".join(found)
