"""The real `push` against the second service: files with everything in them, faults, kills; judged by what
the account became.

A handful of telling combinations; random ones are drawn for `make test-night`.
"""

from __future__ import annotations

import copy
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import duckdb
import pytest

from tests.depth import DEEP
from tests.pipelines.sandboxes import move_account

from . import generate, push_files
from .account import Account
from .push_files import File
from .pushes import Pushed, copied, push, push_and_stop, spills
from .runs import sync
from .server import Service, serve
from .variants import Variants, drawn, writing
from .write_truth import differences

pytestmark = [pytest.mark.slow]

#: All after the effect, and none that has to be waited out: half a minute must pass before a lost activity
#: may be sent again.
FAULTS = {
    "reset": 0.05,
    "500": 0.03,
    "cut": 0.02,
    "502-html": 0.02,
    "200-html": 0.02,
    "empty": 0.01,
    "429": 0.02,
}


@dataclass
class Lab:
    """A service and a synced home of its own for one test."""

    service: Service
    home: Path
    before: Account

    def push(self, *arguments: str, typed: str = "") -> Pushed:
        return push(self.service, self.home, *arguments, typed=typed)

    def wrong(self, file: File, *runs: Pushed) -> list[str]:
        return [
            *differences(self.before, self.service.world, file),
            *spills(self.service, self.before, self.home, *runs),
        ]


@pytest.fixture(scope="module")
def synced(tmp_path_factory: pytest.TempPathFactory) -> tuple[Account, Path]:
    home = tmp_path_factory.mktemp("synced") / "home"
    made = generate.account(
        301, generate.Sizes(contacts=60, campaigns=1, posts=1, links=1), zone="America/St_Johns"
    )
    with serve(made) as service:
        run = sync(service, home, "--only", "business", "lists", "list_fields", "contacts")
    assert run.code == 0, run.output
    return made, home


@contextmanager
def lab(
    synced: tuple[Account, Path],
    place: Path,
    variants: Variants = Variants(),  # noqa: B008
    *,
    limit: int = 500,
) -> Iterator[Lab]:
    """A copy of the synced home, and a service with a copy of the account."""
    made = copy.deepcopy(synced[0])
    with serve(made, variants, limit=limit) as service, copied(synced[1], place / "home") as home:
        move_account(home, service.url)
        yield Lab(service, home, copy.deepcopy(made))


DRAWS: dict[str, Callable[[Account, random.Random, int], File]] = {
    "activities": push_files.activities,
    "tags": push_files.tags,
    "contacts": push_files.contacts,
}


@pytest.mark.parametrize(
    ("kind", "kill_after"),
    [
        ("activities", 60),
        pytest.param("tags", 20, marks=pytest.mark.attack),
        pytest.param("contacts", 20, marks=pytest.mark.attack),
    ],
)
def test_faults_and_a_kill_double_nothing_and_lose_nothing(
    synced: tuple[Account, Path], tmp_path: Path, kind: str, kill_after: int
) -> None:
    shown = {
        "activity_key": "note",
        "activity_place": "detail",
        "activity_time": "minutes",
        "date_form": "unix",
        "spec_dates": False,
    }
    variants = Variants(write_faults=FAULTS, delayed_writes=0.4, delayed_activities=0.4, **shown)
    with lab(synced, tmp_path, variants) as at:
        file = DRAWS[kind](at.before, random.Random(7), 60)
        command = [kind, "--from", str(file.save(tmp_path / f"{kind}.csv"))]
        killed = push_and_stop(at.service, at.home, kill_after, *command, "--apply")
        done = at.push(*command, "--apply")
        again = at.push(*command, "--apply")
        assert at.wrong(file, killed, done, again) == []
        assert (killed.code, done.code, again.code) == (-9, 1, 1), f"some rows are bad\n{done}\n{again}"
        assert again.requests == 0, again


@pytest.mark.attack
@pytest.mark.deep
@pytest.mark.parametrize("kind", ["activities", "tags"])
@pytest.mark.parametrize("seed", range(1, 21 if DEEP else 4))
def test_random_files_under_random_forms_of_writes_arrive_once(
    synced: tuple[Account, Path], tmp_path: Path, seed: int, kind: str
) -> None:
    """Plan, to the end, and once more. Reads never lack a word about the limit: they would crawl."""
    rng = random.Random(seed)
    reads = replace(drawn(rng), missing=frozenset(), broken=frozenset(), rate_headers=True, envelope=True)
    variants = writing(rng, replace(reads, timeline_cut=None))
    with lab(synced, tmp_path, variants, limit=rng.choice([60, 200, 500])) as at:
        file = DRAWS[kind](at.before, rng, 150)
        path = file.save(tmp_path / f"{kind}{rng.choice(['.csv', '.xlsx', '.parquet'])}")
        command = [kind, "--from", str(path)]
        runs = [at.push(*command), *(at.push(*command, "--apply") for _ in range(3))]
        assert (runs[0].requests, runs[-1].requests) == (0, 0), variants.described()
        assert {run.code for run in runs[1:]} == {int(bool(file.unknown or file.bad))}, runs[-1]
        assert at.wrong(file, *runs) == [], variants.described()


def test_bad_and_refused_rows_are_told_by_number_and_reason_and_wait_for_a_retry(
    synced: tuple[Account, Path], tmp_path: Path
) -> None:
    with lab(synced, tmp_path, Variants(soft_wording="Contact not found")) as at:
        file = push_files.tags(at.before, random.Random(3), 80)
        command = ["tags", "--from", str(file.save(tmp_path / "tags.xlsx"))]
        plan = at.push(*command)
        assert (plan.code, plan.requests) == (0, 0), plan
        first = at.push(*command, "--apply")
        assert (first.code, at.wrong(file, first)) == (1, [])
        told = _rejected(at.home)
        assert {number for number, reason in told.items() if reason} == set(file.bad) | file.unknown
        assert at.push(*command, "--apply").requests == 0, "refused rows are not tried again by themselves"
        for number in (0, 1):
            newcomer = replace(
                at.before.members[0], contact_id=4_000_000_000 + number, email=f"nobody.{number}@example.com"
            )
            at.service.account.members.append(newcomer)
        retried = at.push("retry", "1")
        assert retried.requests == 3, f"two, and whose account it is: {retried}"
        assert at.service.account.tags[4_000_000_000] == {"vip"}
        assert set(_rejected(at.home)) == set(file.bad)


def _rejected(home: Path) -> dict[int, str]:
    """What is rejected by now, by row, as analysts see it."""
    query = (
        "select unnest(row_numbers), message from sync.writebacks where push_id = 1 and state = 'rejected'"
    )
    with duckdb.connect(str(home / "warehouse.duckdb"), read_only=True) as connection:
        return dict(connection.execute(query).fetchall())


@pytest.mark.parametrize("is_required", [False, True])
def test_a_field_alone_resubscribes_nobody(
    synced: tuple[Account, Path], tmp_path: Path, is_required: bool
) -> None:
    """Who has unsubscribed since the sync stays so, also where the service insists on a status."""
    with lab(synced, tmp_path, Variants(status_required=is_required)) as at:
        member = next(
            each for each in push_files.addressed(at.service.account) if each.status == 1 and each.fields
        )
        member.status, field_id = 2, next(iter(member.fields))
        file = push_files.File("contacts", ["email", "list_id", field_id])
        file.add(member.email, member.list_id, "another town")
        file.contacts[member.list_id, member.email.lower()] = (2, {field_id: "another town"})
        run = at.push("contacts", "--from", str(file.save(tmp_path / "contacts.csv")), "--apply")
        assert (run.code, at.wrong(file, run)) == (0, []), run


def test_a_file_with_too_many_bad_rows_and_a_query_that_reads_files_send_nothing(
    synced: tuple[Account, Path], tmp_path: Path
) -> None:
    with lab(synced, tmp_path) as at:
        file = push_files.tags(at.before, random.Random(3), 30, bad=0, unknown=0)
        for _ in range(3):
            file.add(None, None, "vip", "add")
        bad = at.push("tags", "--from", str(file.save(tmp_path / "tags.csv")), "--apply")
        file.save(tmp_path / "others.csv")
        read = at.push("tags", "--sql", f"select * from read_csv('{tmp_path / 'others.csv'}')", "--apply")
        assert [bad.code, read.code] == [1, 2]
        assert at.service.log.entries == []
