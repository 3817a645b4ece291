"""Thirty nights of one small account under faults, kills and clocks that are wrong; at nights 10, 20 and 30
every table is the truth.

Three homes read one sandbox, whose clock is put forward to the next night's 02:30 of the account's zone, over
a change to or from summer time that the machine's zone has on another date. The *stormy* home meets faults,
kills and the wrong clocks; its *twin* reads the same nights undisturbed; at a checkpoint a *fresh* home reads
what the service has now. Rows marked as deleted are left out.

- Tables that show the present are the same in all three.
- History that only nights can gather (daily totals, entries of contacts that are gone) is at most the twin's, and the same for
  each night that ended well. Where a wrong clock meets a service that sends no `Date`, nobody can tell which day it is: the days
  that it was dated of are left out.
"""

import datetime as dt
import os
import random
import runpy
import subprocess
import sys
import tempfile
import time
import uuid
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest.mock import patch
from zoneinfo import ZoneInfo

import duckdb

from assets.sources import SOURCE_ASSETS
from home.folder import prepare_home
from home.settings import Settings
from marketing_api import clock
from marketing_api.client import Connection, Secret
from marketing_api.sandbox.app import App
from pipelines.reading import ReadOptions, open_reader
from tests.dialects.server import Options, serve
from tests.pipelines.running import finish
from tests.pipelines.sandboxes import KEY, Dated, Sandbox

NIGHTS = 30
FAULTS = dict.fromkeys(("500-before", "502-html", "cut-json", "reset", "429"), 0.02)
FAULTS |= {"cut-body": 0.01, "stall": 0.01}
HOUR, DAY = 3600, 86_400
#: What becomes of the machine's clock, in seconds: for a whole night, or from somewhere in its middle on.
WRONG_ALL_NIGHT, MOVED_AT_NIGHT = (DAY, 10 * DAY, -DAY, HOUR), (DAY, -2 * HOUR)
#: Over both changes of spring, and over both of autumn: the account's, and the machine's.
SEASONS = (dt.date(2026, 3, 4), dt.date(2026, 10, 10))
ACCOUNT_ZONE, MACHINE_ZONE = "America/New_York", "Europe/Berlin"
#: Whose rows stay although the service shows them no longer; and whose depend on the days that were asked for
#: together.
GATHERED = {"timeline_events", "timeline_visits", "timeline_automations", "coupons", "online_reviews"}
UNJUDGED = {"sentiment_totals"}
_SHIFTED = Path(__file__).parent / "shifted"
_OURS = {"_first_seen_at", "_changed_at", "_deleted_at", "_listing_hash"}

Rows = Counter[tuple[Any, ...]]


@dataclass
class Plan:
    """What one night brings."""

    number: int
    ahead: int = 0  # of the machine's clock, in seconds
    moved: int = 0  # of the same, in the middle of the night
    has_date: bool = True
    kills: int = 0
    is_left: bool = False  # after a kill, until the next night

    def __str__(self) -> str:
        clock = f"clock {self.ahead:+d} s" * bool(self.ahead) or f"moved {self.moved:+d} s" * bool(self.moved)
        words = (clock, "no Date" * (not self.has_date), f"{self.kills} kills" * bool(self.kills))
        words += ("left" * self.is_left,)
        return f"night {self.number}: {', '.join(filter(None, words)) or 'faults only'}"


@dataclass
class Tally:
    """What happened so far."""

    runs: int = 0
    kills: int = 0
    requests: int = 0
    notices: int = 0
    failed: int = 0
    whole: set[str] = field(default_factory=set)  # days that the stormy home has read to the end
    unsure: set[str] = field(default_factory=set)  # days that nobody can tell


def plans(nights: int, rng: random.Random) -> list[Plan]:
    """Every wrong clock with and without `Date`, as far as there are nights; none on a compared night."""
    made = [Plan(number, kills=rng.choice((0, 0, 0, 1, 1, 2))) for number in range(1, nights + 1)]
    free = [plan for plan in made if plan.number not in checkpoints(nights)]
    clocks = [(ahead, 0, dated) for ahead in WRONG_ALL_NIGHT for dated in (True, False)]
    clocks += [(0, moved, dated) for moved in MOVED_AT_NIGHT for dated in (True, False)]
    rng.shuffle(clocks)
    for plan, wrong in zip(rng.sample(free, min(len(free), len(clocks))), clocks, strict=False):
        plan.ahead, plan.moved, plan.has_date = wrong
    for plan in free:
        plan.is_left = plan.kills > 0 and rng.random() < 0.4
    return made


def checkpoints(nights: int) -> set[int]:
    return {night for night in (10, 20, 30) if night <= nights} or {nights}


class Storm:
    """The sandbox and the homes of one attack, in `folder`."""

    def __init__(self, folder: Path, sandbox: Sandbox, season: dt.date, rng: random.Random) -> None:
        self.folder, self.sandbox, self.season, self.rng = folder, sandbox, season, rng
        self.tally = Tally()
        self.usual = 300  # requests of a night
        self._clock = folder / "clock"

    def moment(self, night: int) -> dt.datetime:
        """02:30 of the account's zone: on one date of the season never, or twice."""
        day = self.season + dt.timedelta(days=night)
        return dt.datetime.combine(day, dt.time(2, 30), ZoneInfo(ACCOUNT_ZONE)).astimezone(dt.UTC)

    def night(self, plan: Plan) -> None:
        """The twin first, undisturbed; then the storm."""
        now = self.moment(plan.number)
        self.sandbox.control("faults", off=1)
        self.set_clock(now, 0)
        self._read_calmly("twin")
        self.sandbox.control("faults", **FAULTS, **{"stall-seconds": 0.5})
        Dated.is_on = plan.has_date
        if not plan.has_date and plan.ahead:
            days = (now, now + dt.timedelta(seconds=plan.ahead), now + dt.timedelta(seconds=plan.moved))
            self.tally.unsure |= {str(day.astimezone(ZoneInfo(ACCOUNT_ZONE)).date()) for day in days}
        self.set_clock(now, plan.ahead)
        for _ in range(plan.kills):
            self._kill()
        if not plan.is_left:
            self._read(plan, now)
        Dated.is_on = True

    def _read(self, plan: Plan, now: dt.datetime) -> None:
        """Until all of it is read: with so many faults a request may fail six times in a row."""
        for _ in range(4):
            before = self.sandbox.count
            process = self._start()
            if plan.moved:
                self._wait(process, before + self.rng.randrange(1, self.usual))
                self.set_clock(now, plan.ahead + plan.moved)
            ran = finish(process, 300)
            self.tally.runs += 1
            self.tally.notices += ran.out.count("this machine's clock")
            assert "Traceback" not in ran.text, ran.text[-3000:]
            if ran.code == 0:
                self.usual = self.sandbox.count - before
                self.tally.whole.add(str(now.astimezone(ZoneInfo(ACCOUNT_ZONE)).date()))
                return
            self.tally.failed += 1
            assert ran.code == 1, ran.text[-3000:]
            if plan.ahead and not plan.has_date:
                return  # days that the service does not know yet are said to be left out
        raise AssertionError(f"{plan}: not read in 4 runs: {ran.text[-3000:]}")

    def _kill(self) -> None:
        before = self.sandbox.count
        process = self._start()
        self._wait(process, before + self.rng.randrange(1, self.usual + 50))
        time.sleep(self.rng.uniform(0, 0.5))
        process.kill()
        process.communicate()
        self.tally.kills += 1

    def _wait(self, process: subprocess.Popen[str], count: int) -> None:
        """Until the sandbox has had so many requests, or the process ended with fewer."""
        deadline = time.monotonic() + 30
        while self.sandbox.count < count and process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.02)

    def compare(self, plan: Plan) -> int:
        """The rows that are the same everywhere. AssertionError with what differs."""
        self.sandbox.control("faults", off=1)
        self.set_clock(self.moment(plan.number), 0)
        fresh = f"fresh-{plan.number}"
        self._read_calmly(fresh)
        stormy, twin, new = (read(self._home(name)) for name in ("stormy", "twin", fresh))
        today = str(self.moment(plan.number).astimezone(ZoneInfo(ACCOUNT_ZONE)).date())
        wrong = [
            line
            for table in sorted(twin)
            for line in self._differences(table, stormy[table], twin[table], new[table], today)
        ]
        assert not wrong, f"{plan}\n" + "\n".join(wrong)
        return sum(sum(rows.values()) for days in stormy.values() for rows in days.values())

    def _differences(
        self, table: str, stormy: dict[str, Rows], twin: dict[str, Rows], new: dict[str, Rows], today: str
    ) -> Iterator[str]:
        if table in UNJUDGED:
            return
        if table in GATHERED:
            pairs = [("more than the twin", stormy[""] - twin[""])]
            pairs += [("less than the service", new[""] - stormy[""])]
        elif stormy.keys() | twin.keys() <= {""}:
            pairs = [("not as the twin", _apart(stormy, twin, ""))]
            pairs += [("not as the service", _apart(stormy, new, ""))]
        else:
            days = sorted((stormy.keys() | twin.keys()) - self.tally.unsure)
            pairs = [
                (f"{day}: more than the twin", stormy.get(day, Counter()) - twin.get(day, Counter()))
                for day in days
            ]
            whole = sorted(self.tally.whole & set(days))
            pairs += [
                (f"{day}: less than the twin", twin.get(day, Counter()) - stormy.get(day, Counter()))
                for day in whole
            ]
            pairs += [(f"{day} is still to come", stormy[day]) for day in stormy if day > today]
            pairs += [("today: not as the service", _apart(stormy, new, today))]
        yield from (
            f"{table}: {words}: {sum(rows.values())} rows, e.g. {next(iter(rows))!r}"[:700]
            for words, rows in pairs
            if rows
        )

    def _read_calmly(self, home: str) -> None:
        problems, _ = sync(self._home(home), self.sandbox.url)
        assert not problems, problems
        self.tally.runs += 1

    def _start(self) -> subprocess.Popen[str]:
        words = [sys.executable, "-m", "tests.attack.nights", str(self._home("stormy")), self.sandbox.url]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        return subprocess.Popen(words, env=os.environ | self.environment(), text=True, **pipes)

    def _home(self, name: str) -> Path:
        return self.folder / name

    def set_clock(self, now: dt.datetime, ahead: int) -> None:
        """Of the machine: of the processes that are started, and of this one."""
        temporary = self._clock.with_suffix(".new")
        temporary.write_text(str(now.timestamp() + ahead - time.time()))
        temporary.replace(self._clock)

    def environment(self) -> dict[str, str]:
        path = os.pathsep.join([str(_SHIFTED), str(Path(__file__).parents[2])])
        return {"PYTHONPATH": path, "ATTACK_CLOCK": str(self._clock), "TZ": MACHINE_ZONE}


def sync(home: Path, url: str, key: str = KEY) -> tuple[dict[tuple[str, str], list[str]], list[str]]:
    """Read everything, as `sync --all` without models and copy; returns what is missing, and notices."""
    settings = Settings(prepare_home(home), (Connection("main", url, Secret(key)),))
    with open_reader(settings, list(SOURCE_ASSETS.values()), ReadOptions(requests_all=True)) as reader:
        reader.begin_reading()
        reader.finish_reading()
        reader.note_run(uuid.uuid4().hex, "nightly_sync")
        return reader.list_missing_reasons(), reader.list_notices()


def read(home: Path) -> dict[str, dict[str, Rows]]:
    """Table → day of observing ("" where there is none) → its live rows."""
    found: dict[str, dict[str, Rows]] = {}
    with duckdb.connect(str(home / "warehouse.duckdb"), read_only=True) as connection:
        columns = connection.execute(
            "select table_name, list(column_name order by column_index) from duckdb_columns() where "
            "schema_name = 'source' group by 1"
        ).fetchall()
        for table, names in columns:
            shown = ", ".join(f'"{name}"' for name in names if name not in _OURS)
            live = "_deleted_at is null" if "_deleted_at" in names else "true"
            day = "observed_on::varchar" if "observed_on" in names else "''"
            days: dict[str, Rows] = {} if "observed_on" in names else {"": Counter()}
            sql = f"select {day}, {shown} from source.{table} where {live}"
            for first, *row in connection.execute(sql).fetchall():
                days.setdefault(first, Counter())[tuple(map(str, row))] += 1
            found[table] = days
    return found


def _apart(one: dict[str, Rows], other: dict[str, Rows], day: str) -> Rows:
    here, there = one.get(day, Counter()), other.get(day, Counter())
    return (here - there) + (there - here)


@contextmanager
def storm(seed: int, contacts: int) -> Iterator[Storm]:
    """A sandbox and empty homes."""
    rng = random.Random(seed)
    season = SEASONS[seed % 2]
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="nights-")))
        stack.enter_context(patch.object(App, "respond", Dated.dated))
        made = Storm(folder, Sandbox(""), season, rng)
        made.set_clock(made.moment(0), 0)
        stack.enter_context(patch.dict(os.environ, made.environment()))
        # put back afterwards what the next line replaces
        stack.enter_context(patch.object(clock, "time", clock.time))
        runpy.run_path(str(_SHIFTED / "sitecustomize.py"))
        now = int(made.moment(0).timestamp())
        options = Options(contacts=contacts, rate_limit=0, seed=seed, timezone=ACCOUNT_ZONE, now=now)
        made.sandbox = Sandbox(stack.enter_context(serve(options)))
        yield made


def attack(minutes: float, seed: int, nights: int = NIGHTS, contacts: int = 100) -> str:
    """The nights that begin within the minutes; a Markdown summary. AssertionError with seed and night."""
    began = time.monotonic()
    with storm(seed, contacts) as made:
        lines = []
        for plan in plans(nights, made.rng):
            if time.monotonic() - began > minutes * 60:
                break
            step = (made.moment(plan.number) - made.moment(plan.number - 1)).total_seconds()
            made.sandbox.control("advance", days=step / DAY)
            try:
                made.night(plan)
                if plan.number in checkpoints(nights):
                    lines.append(
                        f"- night {plan.number}: {made.compare(plan):,} rows, every table equal to the truth"
                    )
            except AssertionError as problem:
                again = f"python -m tests.attack nights --seed {seed}"
                raise AssertionError(f"seed {seed}, {plan}: {again}\n{problem}") from problem
            print(f"{plan} ({time.monotonic() - began:.0f} s)", file=sys.stderr, flush=True)
        tally, requests = made.tally, made.sandbox.count
    figures = (
        f"{tally.runs} runs, {tally.kills} kills, {tally.failed} not whole, {requests:,} requests, "
        f"{tally.notices} clock notices"
    )
    return "\n".join(
        [
            f"**nights**, seed {seed}: {plan.number} nights, {figures}, {time.monotonic() - began:.0f} s",
            *lines,
        ]
    )


def read_once(home: str, url: str) -> int:
    """What a night is in a process of its own."""
    problems, notices = sync(Path(home), url)
    reasons = (f"{asset}: {reason}" for (asset, _), found in problems.items() for reason in found)
    print(*notices, *reasons, sep="\n")
    return int(bool(problems))


if __name__ == "__main__":
    sys.exit(read_once(*sys.argv[1:]))
