"""The real command line against the second service: a handful of telling combinations, judged table by table and request by request.

Each run costs several seconds; the wide sweep of random combinations is `tests/benchmarks/sweep_independent.py`.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import duckdb
import pytest

from . import generate
from .limits import Asked
from .runs import Run, discrepancies, start, sync
from .server import Service, serve
from .variants import Variants, live_like

FAULTS = {"500": 0.02, "reset": 0.02, "cut": 0.02, "502-html": 0.02, "200-html": 0.02, "stall": 0.01, "429": 0.02, "empty": 0.01}


@dataclass
class Night:
    """One account after its first night."""

    service: Service
    home: Path
    run: Run


@pytest.fixture(scope="module")
def first_night(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Night]:
    home = tmp_path_factory.mktemp("specified") / "home"
    with serve(generate.account(101, zone="America/New_York"), limit=500) as service:
        yield Night(service, home, sync(service, home))


def agree(found: list[str]) -> None:
    assert not found, "\n".join(found)


def test_service_as_specified_lands_whole(first_night: Night) -> None:
    agree(discrepancies(first_night.service, first_night.home, first_night.run))


def test_second_night_asks_no_detail_again_and_changes_no_row(first_night: Night) -> None:
    """Nothing happened in between: details are asked for new and changed rows only, and loading twice equals once."""
    before, asked = _stamps(first_night.home), len(first_night.service.log.entries)
    run = sync(first_night.service, first_night.home)
    again = first_night.service.log.entries[asked:]
    assert run.code == 0, run.output[-1500:]
    details = {"getlist", "getcampaign", "getpost", "show"}
    assert [entry for entry in again if entry.operation.rpartition("/")[2] in details] == []
    assert len(again) < asked
    assert _stamps(first_night.home) == before


def _stamps(home: Path) -> dict[str, tuple[object, ...]]:
    """Rows and the latest change of every table that is not a daily count."""
    found = {}
    with duckdb.connect(str(home / "warehouse.duckdb"), read_only=True) as connection:
        query = "select table_name, list(column_name) from information_schema.columns where table_schema = 'source' group by 1"
        for name, columns in connection.execute(query).fetchall():
            if "_changed_at" in columns and "observed_on" not in columns:
                row = connection.execute(f"select count(*), max(epoch_us(_changed_at)) from source.{name}").fetchone()
                found[name] = tuple(row or ())
    return found


def test_live_service_at_its_worst_lands_whole(tmp_path: Path) -> None:
    made = generate.account(102, wild=True, strange=True, zone="Australia/Sydney")
    with serve(made, live_like(), limit=500) as service:
        run = sync(service, tmp_path / "home")
        agree(discrepancies(service, tmp_path / "home", run))


def test_account_with_nothing_in_it_is_no_error(tmp_path: Path) -> None:
    variants = Variants(empty_as_list=True, count="missing", rate_place="data", rate_strings=True)
    with serve(generate.account(103, generate.Sizes.nothing(), zone=None), variants, limit=500) as service:
        run = sync(service, tmp_path / "home")
        agree(discrepancies(service, tmp_path / "home", run))


def test_faults_cost_retries_and_outages_cost_their_own_tables_only(tmp_path: Path) -> None:
    variants = Variants(
        faults=FAULTS,
        stall_seconds=0.5,
        page_cap=3,
        missing=frozenset({"reputation/sentiment", "goal/listbydomain"}),
        broken=frozenset({"socialmedia/stats"}),
        rate_place="header",
        timeline_cut=2,
    )
    with serve(generate.account(104, shared_ids=False, zone="Asia/Kolkata"), variants, limit=500) as service:
        run = sync(service, tmp_path / "home")
        agree(discrepancies(service, tmp_path / "home", run, may_fail=True))
        assert run.code == 1, "a table that could not be had must show in the exit code"
        assert "socialmedia/stats" in run.output or "social_links" in run.output
        assert len(service.log.of("socialmedia/stats")) < 30


def test_limit_of_fifteen_is_learnt_used_and_kept(tmp_path: Path) -> None:
    """One listing that does not page, no count, own fields in an object; the clock of the service is ahead."""
    variants = Variants(ignore_page=True, ignore_limit=True, count="missing", custom_fields="fields", clock_skew=90, rate_headers=False)
    with serve(generate.account(105, replace(generate.Sizes(), contacts=40), zone=None), variants, limit=15) as service:
        run = sync(service, tmp_path / "home")
        agree(discrepancies(service, tmp_path / "home", run))
        assert service.log.share(429) < 0.05
        full = sorted(service.log.per_window().values())
        assert full[len(full) // 2] >= 11, f"half of the windows carried fewer than {full[len(full) // 2]} of 15 requests"


@pytest.mark.timeout(300)
def test_killed_run_is_taken_up_without_asking_again(tmp_path: Path) -> None:
    """What was answered more than a second before the kill is durable (design section 4) and not asked again."""
    rate = 40
    with serve(generate.account(106, zone="Europe/Berlin"), limit=rate) as service:
        process = start(service, tmp_path / "home")
        deadline = time.monotonic() + 90
        while len(service.log.entries) < 130 and process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.05)
        process.kill()
        killed_at, before = time.time(), list(service.log.entries)
        process.communicate()
        run = sync(service, tmp_path / "home")
        assert run.code == 0, run.output[-1500:]
        durable = {entry.question for entry in before if entry.was_answered and entry.at < killed_at - 1.5}
        again = [entry for entry in _after(service, before) if entry.question in durable]
        assert len(durable) > 40
        assert [(entry.operation, entry.params) for entry in again] == []
        service.log.entries[:] = [entry for entry in service.log.entries if entry not in before or entry.question in durable]
        agree(discrepancies(service, tmp_path / "home", run))


def _after(service: Service, before: list[Asked]) -> list[Asked]:
    return service.log.entries[len(before) :]
