"""Audience syncs against a model: whatever happens to entries, people, requests and processes, after a quiet run
the service is as the entries say, and what was sent is the difference."""

import shutil
import tempfile
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck
from hypothesis import settings as hypothesis_settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from home.output import PushResult
from home.settings import Settings
from tests.write_back.planner import make_warehouse, rows_of
from write_back import audience_syncs, push_service
from write_back.account_state import Known, load_known
from write_back.audience_syncs import AudienceOptions, find_difference, push_difference, read_audiences
from write_back.input.rows import InputError, Rows
from write_back.item import State
from write_back.kinds import CONTACTS, NOT_IDEMPOTENT
from write_back.order import Ran
from write_back.outbox.outbox import Entry, Outbox, open_outbox

PEOPLE = [f"p{number}@new.example" for number in range(4)]
#: Of the tags that are taken away again, and of one that never is.
TAKEN, KEPT = ("red", "blue"), "green"
LIST = 1


class Killed(Exception):
    """The process ends here."""


@dataclass
class Service:
    """What requests made of it. `refusing`: whose requests it rejects; `kill`: after so many requests the
    sender dies, before (False) or after (True) the last one has arrived."""

    tags: set[tuple[str, str]] = field(default_factory=set)
    cities: dict[str, str] = field(default_factory=dict)
    refusing: frozenset[str] = frozenset()
    kill: tuple[int, bool] | None = None
    sent: Counter[tuple[str, ...]] = field(default_factory=Counter)

    def deliver(self, _: Settings, outbox: Outbox, ran: Ran, watch: object = None) -> list[PushResult]:
        """In place of sending: everything that is open, in its order; what is unknown is repeated."""
        if self.kill == (0, False):
            raise Killed
        with outbox.hold_sender(ran.account):
            outbox.recover_sent(ran.account)
            for entry in outbox.list_open(ran.account):
                if entry.state is State.UNKNOWN:
                    outbox.settle_item(entry.item_id, State.PLANNED)
                outbox.claim_item(entry.item_id)
                self._request(outbox, entry)
        return []

    def _request(self, outbox: Outbox, entry: Entry) -> None:
        email, is_last = str(entry.email), False
        if self.kill is not None:
            left, has_arrived = self.kill
            self.kill, is_last = (left - 1, has_arrived), left <= 1
            if is_last and not has_arrived:
                raise Killed
        is_refused = email in self.refusing
        if not is_refused:
            self._change(entry, email)
        if is_last:
            raise Killed
        state = State.REJECTED if is_refused else State.APPLIED
        outbox.settle_item(entry.item_id, state, message="no" if is_refused else None)

    def _change(self, entry: Entry, email: str) -> None:
        if entry.kind == CONTACTS:
            self.cities[email] = entry.params["fields[11]"]
            self.sent[email, "city"] += 1
            return
        for tag in entry.params["tagname"].split(","):
            self.sent[email, tag] += 1
            if entry.operation == "emailmarketing/addtag":
                self.tags.add((email, tag))
            else:
                assert tag != KEPT, "nobody said that it is to be taken away"
                self.tags.discard((email, tag))


@dataclass
class Written:
    """An entry as somebody wrote it, and whom its query finds now."""

    tag: str
    people: frozenset[str]
    is_there: bool = True
    is_enabled: bool = True
    is_broken: bool = False

    @property
    def wants(self) -> set[tuple[str, str]]:
        return {(who, self.tag) for who in self.people if "@" in who}


GROUPS = st.frozensets(st.sampled_from([*PEOPLE, "nobody"]), min_size=1, max_size=4)
TAKING, KEEPING, LISTED = ("one", "other"), "keeping", "listed"


class WantedStates(RuleBasedStateMachine):
    """Two entries with temporary tags, which may be the same; one whose tags stay; one of a list."""

    @initialize(found=st.lists(GROUPS, min_size=3, max_size=3))
    def begin(self, found: list[frozenset[str]]) -> None:
        self.folder = Path(tempfile.mkdtemp())
        shutil.copytree(WAREHOUSE["home"], self.folder / "home")
        self.settings = Settings(self.folder / "home", folder=self.folder, is_sandbox_chosen=True)
        self.service = Service()
        self.entries = {name: Written("red", people) for name, people in zip(TAKING, found, strict=False)}
        self.entries[KEEPING] = Written(KEPT, found[-1])
        self.cities = {PEOPLE[0]: "Rome"}
        self.pushed: dict[str, set[tuple[str, str]]] = {}  # what each wanted when it was pushed last
        self.is_damaged = False
        self.lost: set[tuple[str, str]] = set()  # kept tags that went with a deleted contact
        self.patch = pytest.MonkeyPatch()
        self.patch.setattr(audience_syncs, "read_query", self.result)
        self.patch.setattr(audience_syncs, "finish_push", self.service.deliver)
        self.patch.setattr(audience_syncs, "load_known", known)
        self.patch.setattr(push_service, "load_known", known)

    def teardown(self) -> None:
        self.patch.undo()
        shutil.rmtree(self.folder)

    # ---- what people do

    @rule(name=st.sampled_from([*TAKING, KEEPING]), people=GROUPS)
    def others_are_found(self, name: str, people: frozenset[str]) -> None:
        self.entries[name].people = people

    @rule(name=st.sampled_from(TAKING), tag=st.sampled_from(TAKEN))
    def rename(self, name: str, tag: str) -> None:
        self.entries[name].tag = tag

    @rule(name=st.sampled_from(TAKING), change=st.sampled_from(["is_there", "is_enabled", "is_broken"]))
    def turn(self, name: str, change: str) -> None:
        entry = self.entries[name]
        setattr(entry, change, not getattr(entry, change))

    @rule(who=st.sampled_from(PEOPLE), city=st.sampled_from(["Rome", "Oslo"]))
    def somebody_moves(self, who: str, city: str) -> None:
        self.cities[who] = city

    @rule(people=GROUPS)
    def the_service_refuses(self, people: frozenset[str]) -> None:
        self.service.refusing = people

    @rule(who=st.sampled_from(PEOPLE))
    def somebody_is_deleted(self, who: str) -> None:
        """At the service, where no reading shows it (`--resync` does). A kept tag is then sent before."""
        self.lost |= {each for each in self.service.tags if each == (who, KEPT)}
        self.service.tags = {each for each in self.service.tags if each[0] != who}
        self.service.cities.pop(who, None)
        self.is_damaged = True

    @rule()
    def cancel(self) -> None:
        with open_outbox(self.settings.home) as outbox:
            outbox.recover_sent("main")
            outbox.cancel_items("main")

    # ---- runs

    def result(self, _: Settings, sql: str, account: str, zone: str) -> Rows:
        if sql == LISTED:
            return rows_of(
                {"email": "", "City": ""}, *({"email": who, "City": of} for who, of in self.cities.items())
            )
        if self.entries[sql].is_broken:
            raise InputError("the query cannot be run")
        return rows_of(
            {"email": "", "x": ""}, *({"email": who, "x": "1"} for who in sorted(self.entries[sql].people))
        )

    def write(self) -> None:
        texts = [f'[activations.{LISTED}]\nquery = "{LISTED}"\nlist = "{LIST}"']
        for name, entry in self.entries.items():
            if entry.is_there:
                more = [
                    f"untag_when_gone = {str(name in TAKING).lower()}",
                    f"enabled = {str(entry.is_enabled).lower()}",
                ]
                texts += [f'[activations.{name}]\nquery = "{name}"\ntag = "{entry.tag}"', *more]
        (self.folder / "activations.toml").write_text("\n".join(texts))

    def run_all(
        self, *, dies_before: int | None = None, accept_shrink: bool = False, resync: bool = False
    ) -> None:
        self.write()
        options = AudienceOptions(accept_shrink=accept_shrink, resync=resync, reject_limit=1.0)
        for place, audience in enumerate(read_audiences(self.settings, options)):
            if audience.error is not None:
                continue
            found = find_difference(self.settings, audience, options)
            name = audience.sync.name
            if place == dies_before:
                raise Killed
            if name != LISTED:
                self.pushed[name] = set() if audience.is_gone else self.entries[name].wants
            push_difference(self.settings, found)

    @rule(
        dies_before=st.none() | st.integers(0, 3),
        kill=st.none() | st.tuples(st.integers(0, 4), st.booleans()),
    )
    def run(self, dies_before: int | None, kill: tuple[int, bool] | None) -> None:
        self.service.kill = kill
        try:
            self.run_all(dies_before=dies_before)
        except Killed:
            pass
        finally:
            self.service.kill = None

    @rule()
    def run_whole(self) -> None:
        self.run_all()

    @rule(
        changes=st.lists(
            st.tuples(st.sampled_from([*TAKING, KEEPING]), GROUPS, st.sampled_from(TAKEN)),
            min_size=4,
            max_size=6,
        )
    )
    def quiet_runs(self, changes: list[tuple[str, frozenset[str], str]]) -> None:
        """Nothing is refused, nobody dies, refusals are tried again; then entries change one by one."""
        self.service.refusing = frozenset()
        with open_outbox(self.settings.home) as outbox:
            outbox.recover_sent("main")
            outbox.retry_items("main", not_idempotent=NOT_IDEMPOTENT)
        self.run_all(accept_shrink=True)
        if self.is_damaged:
            for entry in self.entries.values():  # a resync reaches none that is paused or broken
                entry.is_enabled = True
                entry.is_broken = False
            self.run_all(accept_shrink=True, resync=True)
            self.is_damaged = False
            self.lost -= self.wanted()
        self.check()
        for name, people, tag in changes:
            before, self.entries[name].people = set(self.service.tags), people
            self.entries[name].tag = tag if name in TAKING else KEPT
            self.service.sent.clear()
            self.run_all(accept_shrink=True)
            self.check()
            assert self.service.sent == Counter(before ^ self.service.tags)

    def check(self) -> None:
        wanted = self.wanted()
        assert {each for each in self.service.tags | wanted if each[1] != KEPT} == {
            each for each in self.service.tags & wanted if each[1] != KEPT
        }
        assert self.service.tags >= wanted - self.lost
        assert self.service.cities == self.cities

    def wanted(self) -> set[tuple[str, str]]:
        """Over all entries; one that is paused or broken wants what it wanted last."""
        each = [
            entry.wants if entry.is_enabled and not entry.is_broken else self.pushed.get(name, set())
            for name, entry in self.entries.items()
            if entry.is_there
        ]
        return set().union(*each)

    @invariant()
    def a_bad_row_is_told_once(self) -> None:
        with open_outbox(self.settings.home) as outbox:
            pushes = [push.push_id for push in outbox.list_pushes("main")]
            rejected = [each for push_id in pushes for each in outbox.list_entries(push_id, [State.REJECTED])]
            bad = Counter(each.source for each in rejected if each.email == "nobody")
        assert set(bad.values()) <= {1}


#: Where the warehouse lies that every example copies, and none changes.
WAREHOUSE: dict[str, Path] = {}
ANSWERS: dict[str, Any] = {}


class Remembering(Known):
    """What the warehouse knows, each query run once."""

    def _query_rows(self, statement: str, keys: Iterable[Any], **params: object) -> Iterable[tuple[Any, ...]]:
        several = sorted(keys)
        query = repr((self.account, statement, several, params))
        if query not in ANSWERS:
            ANSWERS[query] = list(super()._query_rows(statement, several, **params))
        return ANSWERS[query]


def known(_: Settings, account: str) -> Known:
    if account not in ANSWERS:
        found = load_known(Settings(WAREHOUSE["home"]), account)
        ANSWERS[account] = Remembering(**vars(found))
    return ANSWERS[account]


@pytest.fixture(scope="module")
def _warehouse(tmp_path_factory: pytest.TempPathFactory) -> None:
    WAREHOUSE["home"] = make_warehouse(tmp_path_factory.mktemp("wanted") / "warehouse.duckdb").parent


@pytest.mark.usefixtures("_warehouse")
@pytest.mark.slow
def test_after_a_quiet_run_the_service_is_as_the_entries_say() -> None:
    run_state_machine_as_test(
        WantedStates,
        settings=hypothesis_settings(
            max_examples=12, stateful_step_count=15, deadline=None, suppress_health_check=list(HealthCheck)
        ),
    )
