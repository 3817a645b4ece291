"""Years of nights in hours: how large each part of a home gets, and how long what is done with it takes.

    python -m tests.benchmarks.bench_years --home FOLDER --log FILE.jsonl [--contacts 2000] [--nights 1000] [--days 1] [--every 100]
        [--rebuild-every 250] [--keep off] [--dagster FOLDER] [--until HH:MM] [--continue]

What is real: recording and sealing, loading, the warehouse, a push's outbox, tidying up (`--keep on`), and on
every `--every`th night planning, models, publishing and what the UI's first page reads of its storage; on
every `--rebuild-every`th a rebuild. What stands in: responses are made here instead of requested, 2 % of the
contacts change each night, a seventh of all timelines and those that changed are requested, a campaign a
week; nights follow one another at once with dates `--days` apart; and the runs of the UI are copies of one
that was recorded (`--dagster`: that folder of a home after one `marketing-sync sync`), with their own ids and
times. Each night is a line of the log; `--continue` goes on behind its last one. No goal: the figures are
compared with those of the other runs."""

from __future__ import annotations

import argparse
import datetime as dt
import json
import os
import random
import shutil
import sqlite3
import sys
import time
import uuid
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import dagster as dg

from assets.planning.crawl_plan import TIMELINES, Planner
from assets.planning.order import Rules
from home.door import outbox_of
from home.folder import prepare_home
from marketing_api.exchange import Exchange, Outcome, Response, id_at
from marketing_api.operation import Operation
from marketing_api.operations import campaigns, contacts, lists
from pipelines.dagster_internals import prune_runs
from tests.write_back.plans import a_plan, tag
from warehouse import tables
from warehouse.archive import Archive
from warehouse.bookkeeping import load_requests
from warehouse.loads.load import Load
from warehouse.models import build_models
from warehouse.policies import Kept
from warehouse.publish import publish_copy
from warehouse.rebuild import rebuild_warehouse
from warehouse.retention import compact_archive, let_go, measure_sizes, note_sizes
from warehouse.warehouse import Warehouse
from write_back.item import State
from write_back.outbox.outbox import Outbox
from write_back.writebacks_export import export_writebacks

_FIRST = dt.datetime(2024, 1, 1, 2, tzinfo=dt.UTC)
_LISTS = 2
_CHANGED, _TURN, _SHOWN = 0.02, 7, 40
_TIMELINES = (tables.TIMELINE_EVENTS, tables.TIMELINE_VISITS, tables.TIMELINE_AUTOMATIONS)
_STATS = (tables.CAMPAIGN_STATS, tables.CAMPAIGN_LINKS, tables.CAMPAIGN_CLICKERS)


@dataclass
class Service:
    """What the account has, by contact id."""

    draw: random.Random
    status: dict[int, int] = field(default_factory=dict)
    events: dict[int, list[int]] = field(default_factory=dict)
    campaigns: dict[int, dt.datetime] = field(default_factory=dict)
    latest: int = 0

    def register(self, count: int, now: dt.datetime) -> None:
        for _ in range(count):
            self.latest += 1
            self.status[self.latest], self.events[self.latest] = (
                1,
                [int(now.timestamp()) - self.draw.randrange(86_400)],
            )

    def live(self, days: int, now: dt.datetime) -> list[int]:
        """So many days: those whose timeline changed. A tenth of a percent a day are new, half as many
        leave."""
        people = list(self.status)
        changed = self.draw.sample(people, round(days * _CHANGED * len(people)))
        for contact in changed:
            self.status[contact] = self.draw.choice((1, 1, 1, 2))
            self.events[contact].append(int(now.timestamp()) - self.draw.randrange(86_400))
        for contact in self.draw.sample(people, round(days * 0.0005 * len(people))):
            del self.status[contact]
        self.register(round(days * 0.001 * len(people)), now)
        if (week := (now - _FIRST).days // 7 + 1) not in self.campaigns:
            self.campaigns[week] = now
        return [contact for contact in changed if contact in self.status]


class Nights:
    """Lives through them; every `timed` part of a night is in `took`, in seconds."""

    def __init__(self, home: Path, count: int, days: int, keep: Kept | None, recorded: Path | None) -> None:
        self.home, self.days, self.keep = home, days, keep
        self.draw = random.Random(17)
        self.service = Service(self.draw)
        self.service.register(count, _FIRST)
        self.took: dict[str, float] = {}
        self.number = 0
        self.now = _FIRST
        self._requests = 0
        self._runs = Runs(home / "dagster", recorded) if recorded else None

    def go_on_behind(self, nights: int) -> None:
        """The home has so many: bring the service to where it was then."""
        for _ in range(nights):
            self._begin()
            self.number += 1
            if self._runs:
                self._runs.count()

    def _begin(self) -> list[int]:
        """The contacts whose timelines are new or changed."""
        self.now, self.took, self._requests = _FIRST + dt.timedelta(days=self.days * self.number), {}, 0
        return self.service.live(self.days, self.now) if self.number else list(self.service.status)

    def night(self, *, is_measured: bool, is_rebuilt: bool) -> dict[str, Any]:
        changed = self._begin()
        with self.timed("night"), Archive(self.home / "archive") as self.archive:
            self.warehouse = Warehouse(self.home, self.archive)
            with self.timed("reading"):
                self._read(changed)
            self._push()
        if self._runs:
            self._runs.add(self.now)
        if self.keep:
            with self.timed("tidying"):
                self._tidy(self.keep)
        if is_measured:
            self._measure()
        if is_rebuilt:
            with self.timed("rebuild"):
                report = rebuild_warehouse(self.home)
            assert not report.failed
        self.number += 1
        return {
            "night": self.number,
            "day": (self.now - _FIRST).days,
            "requests": self._requests,
            "took": self.took,
            "files": sum(1 for _ in self.home.rglob("*.parquet")),
            "sizes": measure_sizes(self.home) if is_measured or self.number % 10 == 0 else {},
            "load": round(os.getloadavg()[0], 1),
        }

    @contextmanager
    def timed(self, name: str) -> Iterator[None]:
        began = time.perf_counter(), time.process_time()
        yield
        self.took[name] = round(time.perf_counter() - began[0], 3)
        self.took[f"{name}_cpu"] = round(time.process_time() - began[1], 3)

    # -- reading

    def _read(self, changed: list[int]) -> None:
        """Table by table, as the assets do it."""
        status = self.service.status
        items = [{"id": number, "name": f"List {number}"} for number in range(1, _LISTS + 1)]
        self._load(
            "lists",
            [self._ask(lists.GETLISTS, {"lists": {"items": items}}, limit=100_000, page=1)],
            tables.LISTS,
        )
        for number in range(1, _LISTS + 1):
            members = [self._contact(contact) for contact in status if contact % _LISTS == number % _LISTS]
            page = self._ask(
                contacts.GETCONTACTS, {"contacts": {"items": members}}, listid=number, limit=100_000, page=1
            )
            self._load("contacts", [page], tables.CONTACTS)
        turn = [contact for contact in status if contact % _TURN == self.number % _TURN]
        self._load(
            "timelines",
            [self._timeline(contact) for contact in dict.fromkeys([*changed, *turn])],
            *_TIMELINES,
        )
        listed, *stats = self._campaigns()
        self._load("campaigns", [listed], tables.CAMPAIGNS)
        self._load("campaign_stats", stats, *_STATS)
        self.archive.seal_requests()
        with self.warehouse.open_for_writing() as connection:
            load_requests(connection, self.archive)

    def _load(self, asset: str, responses: list[Response], *filled: tables.Table) -> None:
        at = self.now + dt.timedelta(milliseconds=70 * self._requests + 1)
        ids, names = (
            tuple(response.request_id for response in responses),
            tuple(table.name for table in filled),
        )
        self.warehouse.apply_load(
            Load("main", asset, names, ids, "UTC", logged_at=at, due_at=at + dt.timedelta(days=1))
        )

    def _contact(self, contact: int) -> dict[str, str]:
        return {
            "id": str(contact),
            "email": f"person.{contact}@example{contact % 50}.com",
            "status": str(self.service.status[contact]),
            "registration_date": "2023-11-04 04:33 PM",
            "city": f"Town {contact % 500}",
            "first": f"Name {contact}",
        }

    def _timeline(self, contact: int) -> Response:
        details = [{"key": "subject", "label": "Subject", "value": f"Offer {contact % 100}"}]
        events = [
            {
                "key": "email-campaign-sent",
                "snippet": f"Campaign {at % 100} was sent",
                "timestamp": at,
                "datetime": "-",
                "details": details,
            }
            for at in self.service.events[contact][-_SHOWN:]
        ]
        empty = {"data": [], "count": 0}
        data = {
            "id": contact,
            "timeline": {"data": events, "count": len(events), "total": len(events)},
            "utm": empty,
            "automated": empty,
        }
        return self._ask(contacts.TIMELINE, data, id=contact, include="utm,automated")

    def _campaigns(self) -> Iterator[Response]:
        sent = self.service.campaigns
        items = [
            {
                "id": number,
                "name": f"Campaign {number}",
                "type": "standard",
                "send_date": f"{at:%m/%d/%Y %I:%M %p}",
            }
            for number, at in sent.items()
        ]
        yield self._ask(
            campaigns.CAMPAIGNS, {"campaigns": {"items": items}}, filter="all", limit=100_000, page=1
        )
        for number in [number for number, at in sent.items() if self.now - at < dt.timedelta(days=30)]:
            age = (self.now - sent[number]).days
            clicks = [
                {"url": f"https://shop.example.com/{n}", "clicks": 50 + age, "clickers": 20 + age}
                for n in range(4)
            ]
            payload = {
                "campaign": {
                    "stats": {"open": f"{400 + 9 * age} (20%)", "unopen": f"{1600 - 9 * age} (80%)"},
                    "clicks": clicks,
                }
            }
            yield self._ask(campaigns.STATS, payload, id=number, type="standard")

    def _ask(self, operation: Operation, data: Any, **params: Any) -> Response:
        self._requests += 1
        at = self.now + dt.timedelta(milliseconds=70 * self._requests)
        limit = {"limit": "15", "requests": str(self._requests % 15)}
        body = json.dumps(
            {"response": {"header": {"status": "ok"}, "data": data}, "rate-limit": limit}
        ).encode()
        call = operation.bind(**params)
        self.archive.record_exchange(
            Exchange(id_at(at), "main", call, at, 3, 120, 200, Outcome.OK, None, body)
        )
        return Response(id_at(at), "main", call, at, body)

    # -- what else a night does

    def _push(self) -> None:
        """A nightly push of a tenth of the contacts, of which few have anything to send."""
        count = len(self.service.status) // 10
        with Outbox(outbox_of(self.home), clock=self.now.timestamp) as outbox:
            outbox.enqueue_plan(
                a_plan(*(tag(row, name=f"n{self.number}") for row in range(2, 7)), idle=range(7, count))
            )
            for entry in outbox.list_open("main"):
                outbox.claim_item(entry.item_id)
                for state in (State.APPLIED, State.VERIFIED):
                    outbox.settle_item(entry.item_id, state, drift={})
            if self.keep:
                outbox.prune_rows(self.keep.skipped)
        with self.timed("export"):
            export_writebacks(self.warehouse.open_for_writing(), self.home)

    def _tidy(self, keep: Kept) -> None:
        with (
            closing(Archive(self.home / "archive")) as archive,
            Warehouse(self.home, archive).open_for_writing() as connection,
        ):
            let_go(connection, keep, self.now)
            note_sizes(connection, self.home, self.now)
        compact_archive(self.home, keep, self.now)
        if self._runs and keep.dagster:
            prune_runs(self.home, self.now - dt.timedelta(keep.dagster))

    def _measure(self) -> None:
        path = self.home / "warehouse.duckdb"
        with self.timed("planning"), closing(Archive(self.home / "archive")) as archive:
            Planner(
                Warehouse(self.home, archive), "main", Rules, {TIMELINES}, lambda: self.now
            ).make_contact_plan()
        with self.timed("models"):
            report = build_models(path)
            assert not report.problem, report.problem
        with self.timed("publishing"):
            publish_copy(self.home)
        if self._runs:
            with self.timed("first_page"):
                self._runs.first_page()


class Runs:
    """Dagster's storage of the home, with a copy of the one recorded run for each night."""

    def __init__(self, folder: Path, recorded: Path) -> None:
        prepare_home(folder.parent)
        self._runs, self._index = folder / "history" / "runs.db", folder / "history" / "runs" / "index.db"
        if not self._runs.exists():
            shutil.copytree(recorded / "history", folder / "history", dirs_exist_ok=True)
        os.environ["DAGSTER_HOME"] = str(folder)
        with closing(sqlite3.connect(recorded / "history" / "runs.db")) as db:
            (self._old, self._created), *_ = db.execute(
                "select run_id, create_timestamp from runs"
            ).fetchall()
        self._recorded = recorded / "history"
        with self._template("runs.db") as db:
            self._last = int(db.execute("select max(id) from runs").fetchone()[0])

    @contextmanager
    def _template(self, name: str) -> Iterator[sqlite3.Connection]:
        with closing(sqlite3.connect(self._recorded / name)) as db:
            yield db

    def add(self, now: dt.datetime) -> None:
        new, moment = str(uuid.uuid4()), f"{now:%Y-%m-%d %H:%M:%S.%f}"
        target = self._index.with_name(f"{new}.db")
        shutil.copyfile(self._recorded / "runs" / f"{self._old}.db", target)
        with closing(sqlite3.connect(target)) as db, db:
            db.execute(
                "update event_logs set run_id = ?, event = replace(event, ?, ?), timestamp = ?",
                [new, self._old, new, moment],
            )
        self.count()
        self._copy(
            "runs.db",
            self._runs,
            ("runs", "run_tags"),
            new,
            {
                "create_timestamp": moment,
                "update_timestamp": moment,
                "start_time": now.timestamp(),
                "end_time": now.timestamp() + 60,
            },
        )
        self._copy(
            "runs/index.db",
            self._index,
            ("event_logs", "asset_event_tags", "asset_check_executions"),
            new,
            {"timestamp": moment, "create_timestamp": moment, "evaluation_event_timestamp": moment},
        )

    def count(self) -> None:
        self._last += 1

    def _copy(
        self, name: str, target: Path, names: tuple[str, ...], new: str, moments: dict[str, Any]
    ) -> None:
        """The recorded run's rows as another's; ids of events are moved alike in all tables."""
        shift = self._last * 100_000
        with self._template(name) as source, closing(sqlite3.connect(target)) as db, db:
            for table in names:
                columns = [column for _, column, *_ in source.execute(f"pragma table_info({table})")]
                given = []
                for row in source.execute(f"select * from {table}").fetchall():
                    values = dict(zip(columns, row, strict=True))
                    for column, value in values.items():
                        if isinstance(value, str):
                            values[column] = value.replace(self._old, new)
                        if value is not None and column in (
                            "id",
                            "event_id",
                            "evaluation_event_storage_id",
                            "materialization_event_storage_id",
                        ):
                            values[column] = value + shift
                    values |= {
                        column: moment for column, moment in moments.items() if values.get(column) is not None
                    }
                    given.append(tuple(values.values()))
                db.executemany(f"insert into {table} values ({', '.join('?' * len(columns))})", given)

    def first_page(self) -> None:
        """What the overview reads: the last runs, the latest of every asset."""
        with dg.DagsterInstance.get() as instance:
            assert instance.get_runs(limit=100)
            instance.get_runs_count(dg.RunsFilter(statuses=[dg.DagsterRunStatus.SUCCESS]))
            assert instance.get_asset_records()


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--home", type=Path, default=Path("years"))
    parser.add_argument("--log", type=Path, default=Path("years.jsonl"))
    parser.add_argument("--contacts", type=int, default=2_000)
    parser.add_argument("--nights", type=int, default=1_000)
    parser.add_argument("--days", type=int, default=1, help="from one night to the next")
    parser.add_argument("--every", type=int, default=100)
    parser.add_argument("--rebuild-every", type=int, default=250)
    parser.add_argument("--keep", default="", help="off, or as MARKETING_KEEP")
    parser.add_argument("--dagster", type=Path)
    parser.add_argument("--until", default="")
    parser.add_argument("--continue", action="store_true", dest="is_continued")
    chosen = parser.parse_args()
    keep = None if chosen.keep == "off" else Kept.from_text(chosen.keep) if chosen.keep else Kept()
    done = len(chosen.log.read_text().splitlines()) if chosen.is_continued else 0
    if not done:
        shutil.rmtree(chosen.home, ignore_errors=True)
        chosen.home.mkdir(parents=True)
    nights = Nights(chosen.home, chosen.contacts, chosen.days, keep, chosen.dagster)
    nights.go_on_behind(done)
    with chosen.log.open("a" if done else "w") as log:
        for number in range(done + 1, chosen.nights + 1):
            found = nights.night(
                is_measured=number % chosen.every == 0, is_rebuilt=number % chosen.rebuild_every == 0
            )
            log.write(json.dumps(found) + "\n")
            log.flush()
            if chosen.until and f"{dt.datetime.now():%H:%M}" >= chosen.until:
                print(f"ended after {number} nights: it is {chosen.until}")
                break
    return 0


if __name__ == "__main__":
    sys.exit(main())
