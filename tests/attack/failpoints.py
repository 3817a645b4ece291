"""SQLite's way: count the places where a command can fail, then make each fail once.

Each case is a copy of a prepared home and account: the command runs and meets one fault (a kill, an error of
a call, a disk that is full from there on, a torn write, a lie of the service), then it runs again without, as
people do. What is then in the warehouse, in what analysts read and in the account must be what it is without
a fault. Each line of ours that can fail comes first, then further calls from the same lines, as long as time
allows."""

import datetime as dt
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.attack import judging, lies
from tests.attack.judging import Columns, Row, Verdict
from tests.attack.places import CHANGING, DATABASES, LOOK, ROOT, WIRE, Place, Places
from tests.attack.stage import KEY, Ended, Service, asked, copy, run, warm
from tests.attack.victims import VICTIMS, Victim, prepare
from tests.pipelines.leftovers import contents
from tests.ports import free_port

CONTACTS = 20
LEAST = 3  # cases of a command, however slow the machine is
LIE = "answer"  # the kind of the places where the service lies
Tables = dict[str, Counter[Row]]


@dataclass(frozen=True)
class Case:
    fault: str
    at: Place

    def __str__(self) -> str:
        return f"{self.fault}|{self.at}"


@dataclass
class Reference:
    """What a command leaves when nobody attacks it."""

    seen: Counter[tuple[str, str]]
    answers: int
    left_out: Columns
    before: Tables
    after: Tables
    published: tuple[Tables, Tables]  # before and after
    written: Counter[Any]
    names: set[str]
    seconds: float


@dataclass
class Tally:
    """What came of the cases of one command with one kind of fault."""

    failed: set[Place] = field(default_factory=set)
    missed: int = 0
    lost: int = 0
    duplicated: int = 0
    wrong_deletions: int = 0
    hangs: int = 0
    hurt: int = 0
    seconds: float = 0.0


@dataclass
class Attack:
    """`folder`: where homes are. They are made again when the date changes, because daily tables have it."""

    folder: Path
    seed: int
    service: Service
    tallies: dict[tuple[str, str], Tally] = field(default_factory=lambda: defaultdict(Tally))
    counted: dict[str, Reference] = field(default_factory=dict)
    findings: list[str] = field(default_factory=list)

    @property
    def _today(self) -> Path:
        return self.folder / f"{dt.datetime.now(dt.UTC):%Y-%m-%d}"

    def reference(self, victim: Victim) -> Reference:
        key = f"{self._today.name} {victim.name}"
        if key not in self.counted:
            self.counted[key] = self._count(victim)
        return self.counted[key]

    def _count(self, victim: Victim) -> Reference:
        home, once, twice = (self._today / name for name in (victim.home, "once", "twice-run"))
        prepare(victim.home, self._today, self.service)
        copy(home, once)
        with self.service.running(once / "state") as sandbox:
            ended = run(once, sandbox.url, victim.action, Places())
            assert ended.code == 0, f"{victim.name}: {ended.text}"
            noted = json.loads((once / "places.json").read_text())["seen"]
            seen = {(kind, site): count for kind, site, count in noted}
            answers, effects = sandbox.count, written(sandbox.control("written"))
        copy(home, twice)
        with self.service.running(twice / "state") as sandbox:
            for _ in range(2):
                again = run(twice, sandbox.url, victim.action)
                assert again.code == 0, f"{victim.name}: {again.text}"
            assert written(sandbox.control("written")) == effects, f"{victim.name} twice does more"

        def look() -> Reference:
            files = [one / "home" / "warehouse.duckdb" for one in (once, twice)]
            left_out = judging.differing_columns(*files)
            before, after = (
                judging.rows(one / "home" / "warehouse.duckdb", left_out) for one in (home, once)
            )
            published = tuple(judging.rows(published_of(one), left_out) for one in (home, once))
            names = {name for one in (home, once, twice) for name in judging.names(one / "home")}
            return Reference(
                Counter(seen), answers, left_out, before, after, published, effects, names, ended.seconds
            )  # type: ignore[arg-type]

        return asked(look)  # type: ignore[no-any-return]

    def carry_out(self, victim: Victim, case: Case) -> Verdict:
        self.reference(victim)  # so that the processes forked from here have it
        began = time.monotonic()
        folder = self._today / "case"
        copy(self._today / victim.home, folder)
        is_lie = case.at.kind == LIE
        places = None if is_lie else Places(case.fault, case.at)
        told = folder / "told"
        tell = (lambda: lies.tell(case.fault, case.at.occurrence, told)) if is_lie else (lambda: None)
        with self.service.running(folder / "state", tell) as sandbox:
            hurt = run(folder, sandbox.url, victim.action, places)
            between = asked(lambda: self._look_between(victim, folder, hurt))
            again = run(folder, sandbox.url, victim.action)
            effects = written(sandbox.control("written"))
        verdict: Verdict = asked(lambda: self._look(victim, folder, again, between, effects))
        is_met = told.exists() if is_lie else _is_met(folder, hurt)
        self._note(victim, case, verdict, is_met=is_met, seconds=time.monotonic() - began)
        return verdict

    def _look_between(self, victim: Victim, folder: Path, hurt: Ended) -> Verdict:
        """After the fault, before anybody has done anything about it."""
        reference, verdict = self.reference(victim), Verdict()
        judging.check_words(verdict, "with the fault", hurt, (0, 1, 2, -9))
        if not victim.name.startswith("push"):
            now = judging.rows(folder / "home" / "warehouse.duckdb", reference.left_out)
            for table in (name for name in reference.before if name.startswith("source.")):
                kept = reference.before[table] & reference.after.get(table, Counter())
                if gone := kept - now.get(table, Counter()):
                    verdict.wrong_deletions += gone.total()
                    note = f"{table}: {gone.total()} rows gone after the fault, e.g. {next(iter(gone))}"
                    verdict.notes.append(note[:500])
        published = judging.rows(published_of(folder), reference.left_out)
        if victim.is_publishing and published not in reference.published:
            verdict.notes.append("what is published is neither the old nor the new")
        return verdict

    def _look(
        self, victim: Victim, folder: Path, again: Ended, verdict: Verdict, effects: Counter[Any]
    ) -> Verdict:
        """After the command was run again."""
        reference, home = self.reference(victim), folder / "home"
        judging.check_words(verdict, "run again", again, (0,))

        def compare_tables(path: Path, wanted: Tables, what: str = "") -> None:
            found = judging.rows(path, reference.left_out)
            for table in sorted(found.keys() | wanted.keys()):
                rows = (wanted.get(table, Counter()), found.get(table, Counter()))
                verdict.compare(f"{what}{table}", *rows)

        compare_tables(home / "warehouse.duckdb", reference.after)
        verdict.compare("the account", reference.written, effects)
        if victim.is_publishing:
            compare_tables(published_of(folder), reference.published[1], "published ")
        if surplus := set(judging.names(home)) - reference.names:
            verdict.notes.append(f"left behind: {', '.join(sorted(surplus))}")
        places = [place for place, content in contents(home) if KEY.encode() in content]
        verdict.notes += [f"the key stands in {place}" for place in places]
        return verdict

    def _note(self, victim: Victim, case: Case, verdict: Verdict, *, is_met: bool, seconds: float) -> None:
        kind = "lie" if case.at.kind == LIE else case.fault
        tally = self.tallies[victim.name, kind]
        tally.seconds += seconds
        tally.missed += not is_met
        if is_met:
            tally.failed.add(case.at if kind != "lie" else Place(case.fault, LIE, case.at.occurrence))
        tally.lost += verdict.lost
        tally.duplicated += verdict.duplicated
        tally.wrong_deletions += verdict.wrong_deletions
        tally.hangs += verdict.hangs
        tally.hurt += not verdict.is_clean
        if not verdict.is_clean:
            replay = f'python -m tests.attack failpoints --seed {self.seed} --only "{victim.name}|{case}"'
            self.findings.append("\n  ".join([replay, *verdict.notes]))
            print(self.findings[-1], flush=True)


def _is_met(folder: Path, hurt: Ended) -> bool:
    if hurt.code == -9:
        return True
    path = folder / "places.json"
    return path.exists() and bool(json.loads(path.read_text())["is_met"])


def published_of(folder: Path) -> Path:
    return folder / "home" / "published" / "marketing.duckdb"


def written(contacts: dict[str, Any]) -> Counter[Any]:
    """What writes made of the account, to be counted; ids of new contacts differ from run to run."""
    found: Counter[Any] = Counter()
    for number, card in contacts["contacts"].items():
        if card is None:
            found["deleted", number] += 1
            continue
        email = card["email"]
        found[
            "contact", email, card["list_id"], card["status"], json.dumps(card["values"], sort_keys=True)
        ] += 1
        found.update(("tag", email, tag) for tag in card["tags"])
        found.update(("activity", email, *map(str, activity)) for activity in card["activities"])
    return found


# -- which cases


def cases(reference: Reference, chance: random.Random) -> Iterator[Case]:
    """Each line and each lie once with each fault that fits it; then other calls from the same lines."""
    lines = [(kind, site, count) for (kind, site), count in sorted(reference.seen.items())]
    first = [(kind, site, 1 + chance.randrange(count), count) for kind, site, count in lines]
    once = [Case(fault, Place(*where)) for *where, _ in first for fault in _fitting(where[0])]
    once += [Case("torn", Place(*where)) for *where, _ in first if where[0] == "write"]
    once += [Case("full", Place(*where)) for *where, _ in first if where[0] in (*CHANGING, *DATABASES)]
    every_lie = (*lies.BROKEN, *lies.SAID) if reference.answers else ()
    once += [Case(lie, Place(LIE, LIE, 1 + chance.randrange(reference.answers))) for lie in every_lie]
    others = [
        Case(fault, Place(kind, site, each))
        for kind, site, at, count in first
        for each in range(1, count + 1)
        for fault in _fitting(kind)
        if each != at
    ]
    more_lies = [
        Case(lie, Place(LIE, LIE, number + 1)) for lie in every_lie for number in range(reference.answers)
    ]
    done: set[Case] = set()
    for each in (once, others, more_lies):
        chance.shuffle(each)
        # what could send twice or delete wrongly comes first
        each.sort(key=lambda case: case.at.kind not in (*WIRE, LIE))
        yield from (case for case in each if case not in done)
        done |= set(each)


def _fitting(kind: str) -> tuple[str, ...]:
    return ("error",) if kind == LOOK else ("kill", "error")


# -- the whole


_COLUMNS = (
    *("command", "fault", "places: calls (lines)", "failed once: calls (lines)", "not met"),
    *("lost", "duplicated", "wrong deletions", "hangs", "hurt", "seconds"),
)


def summary(attack: Attack) -> str:
    lines = [f"| {' | '.join(_COLUMNS)} |", f"|---|---|{'---:|' * (len(_COLUMNS) - 2)}"]
    for (name, fault), tally in attack.tallies.items():
        calls, sites = _counted(attack, name, fault)
        failed = f"{len(tally.failed)} ({len({(each.kind, each.site) for each in tally.failed})})"
        figures = (tally.missed, tally.lost, tally.duplicated, tally.wrong_deletions)
        figures += (tally.hangs, tally.hurt, round(tally.seconds))
        lines.append(f"| {name} | {fault} | {calls} ({sites}) | {failed} | {' | '.join(map(str, figures))} |")
    return "\n".join([*lines, "", f"seed {attack.seed}"])


def _counted(attack: Attack, name: str, fault: str) -> tuple[int, int]:
    reference = next(each for key, each in attack.counted.items() if key.partition(" ")[2] == name)
    if fault == "lie":
        count = len(lies.BROKEN) + len(lies.SAID)
        return reference.answers * count, count
    kinds = {"torn": ("write",), "full": (*CHANGING, *DATABASES)}
    found = [
        count
        for (kind, _), count in reference.seen.items()
        if (kind in kinds[fault] if fault in kinds else fault in _fitting(kind))
    ]
    return sum(found), len(found)


def assault(attack: Attack, chosen: Sequence[Victim], minutes: float) -> None:
    """Each command gets an equal share of the time that is left."""
    ends = time.monotonic() + minutes * 60
    for left, victim in zip(range(len(chosen), 0, -1), chosen, strict=True):
        until = time.monotonic() + (ends - time.monotonic()) / left
        reference = attack.reference(victim)
        print(
            f"{victim.name}: {reference.seen.total()} places on {len(reference.seen)} lines, "
            f"{reference.seconds:.1f} s",
            flush=True,
        )
        chance = random.Random(f"{attack.seed} {victim.name}")
        for number, case in enumerate(cases(reference, chance)):
            if time.monotonic() > until and number >= LEAST:
                break
            attack.carry_out(victim, case)
        print(f"{summary(attack)}\n", flush=True)


def main(minutes: float, seed: int, only: str) -> int:
    """`only`: COMMAND|FAULT|PLACE, or a command."""
    warm()
    name, _, case = only.partition("|")
    chosen = [victim for victim in VICTIMS if name in ("", victim.name)]
    yesterday = dt.datetime.combine(dt.datetime.now(dt.UTC), dt.time(8), dt.UTC) - dt.timedelta(days=1)
    # not TemporaryDirectory: forked processes would remove it at their end
    folder = Path(tempfile.mkdtemp(prefix="attack-"))
    try:
        attack = Attack(folder, seed, Service(int(yesterday.timestamp()), CONTACTS, free_port()))
        if case:
            fault, _, at = case.partition("|")
            attack.carry_out(chosen[0], Case(fault, Place.read(at)))
        else:
            assault(attack, chosen, minutes)
        print(f"\n{summary(attack)}")
    finally:
        shutil.rmtree(folder)
    return int(bool(attack.findings))


def attack(minutes: float, seed: int, only: str = "") -> str:
    """Every command, in a warm process without threads. AssertionError with the replay commands."""
    command = [sys.executable, "-m", "tests.attack.failpoints", str(minutes), str(seed), only]
    ran = subprocess.run(
        command, capture_output=True, text=True, cwd=ROOT, env=os.environ | {"PYTHONPATH": ROOT}, check=False
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout.rpartition("\n\n|")[2] and "|" + ran.stdout.rpartition("\n\n|")[2]


if __name__ == "__main__":
    sys.exit(main(float(sys.argv[1]), int(sys.argv[2]), sys.argv[3]))
