"""A home knows whose data it holds: nothing of another business is loaded, and nothing is sent to it."""

from __future__ import annotations

import datetime as dt
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import dagster as dg
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from home.folder import dagster_home
from home.identity import FILE, Owner, identity_of, is_same
from home.settings import Settings
from marketing_api.client import Connection, Secret
from marketing_api.sandbox.server import serve
from pipelines.definitions import build_definitions
from tests.fixtures import STANDING, Command
from tests.independent.generate import Sizes, account
from tests.independent.server import serve as serve_independent
from tests.pipelines.sandboxes import KEY, Sandbox
from tests.pipelines.tables import Tables, differing, query, rows
from warehouse.lake import Manifest
from warehouse.policies import PersonalData
from warehouse.publish import Published
from warehouse.storage import Storage

_NAMES = st.sampled_from([None, "Harbor Coffee", "Olive Grove Table"])
_OWNERS = st.builds(
    Owner,
    business_id=st.sampled_from([None, 4001, 4002]),
    business_name=_NAMES,
    service_name=st.sampled_from([None, "harbor"]),
    host=st.sampled_from([None, "api.example.com", "api.example.org"]),
)


# ---- the rule


@given(_OWNERS, _OWNERS)
def test_another_id_is_another_business_and_the_same_one_at_its_host_never_is(
    known: Owner, told: Owner
) -> None:
    assert is_same(known, known)
    if None not in (known.business_id, told.business_id):
        assert known.business_id == told.business_id or not is_same(known, told)
        if known.business_id == told.business_id and known.host == told.host:
            assert is_same(known, told), "the service renames businesses"
    elif known.is_told and (
        known.business_name != told.business_name or known.service_name not in (None, told.service_name)
    ):
        assert not is_same(known, told)


@pytest.mark.parametrize(
    ("known", "told", "is_ours"),
    [
        (
            Owner(1, "Harbor Coffee", "harbor", "api.example.com"),
            Owner(1, "Harbor Tea", "harbor", "api.example.com"),
            True,
        ),
        (
            Owner(1, "Harbor Coffee", "harbor", "api.example.com"),
            Owner(1, "Harbor Coffee", "harbor", "api.example.org"),
            True,
        ),
        (
            Owner(1, "Harbor Coffee", "harbor", "api.example.com"),
            Owner(1, "Olive Grove", "olive", "api.example.org"),
            False,
        ),
        (
            Owner(None, "Harbor Coffee", "harbor", "api.example.com"),
            Owner(None, "Harbor Coffee", "harbor", "api.example.org"),
            False,
        ),
        (Owner(1, "Harbor Coffee", "harbor"), Owner(1, "Harbor Tea", "harbor", "api.example.com"), True),
        (
            Owner(1, "Harbor Coffee", "harbor", "api.example.com"),
            Owner(None, "Harbor Coffee", "harbor", "api.example.com"),
            True,
        ),
        (Owner(1, "Harbor Coffee", "harbor", "api.example.com"), Owner(host="api.example.com"), False),
        (Owner(), Owner(1, "Harbor Coffee", "harbor", "api.example.com"), True),
        (Owner(None, "Harbor Coffee"), Owner(None, "Harbor Coffee", "harbor"), True),
    ],
    ids=[
        "renamed",
        "moved",
        "both: each service counts its own",
        "no id, another host",
        "of before",
        "no id tonight",
        "nothing",
        "new",
        "short name read since",
    ],
)
def test_which_business_is_the_same(known: Owner, told: Owner, is_ours: bool) -> None:
    assert is_same(known, told) is is_ours


# ---- over HTTP, with both servers

READ = ("sync", "--reads-only", "--only", "business", "lists", "contacts")
_READS = {"app/me", "emailmarketing/getlists", "emailmarketing/getlist", "emailmarketing/getcontacts"}
PEOPLE = (
    "select contact_id, any_value(list_id) as list_id from source.contacts where _deleted_at "
    "is null group "
    "by 1 order by 1 limit 2"
)
DELETIONS = ("push", "deletions", "--sql", PEOPLE)
TAGS = ("push", "tags", "--sql", f"select contact_id, 'vip' as tag from ({PEOPLE})")


@dataclass(frozen=True)
class Service:
    """A business at a server of its own. `asked`: the operations that were requested so far."""

    url: str
    key: str
    asked: Callable[[], list[str]]

    @property
    def settings(self) -> dict[str, str]:
        return {"MARKETING_API_URL": self.url, "MARKETING_API_KEY": self.key}

    @property
    def writes(self) -> int:
        return sum(operation not in _READS for operation in self.asked())


@contextmanager
def sandbox(seed: int) -> Iterator[Service]:
    with serve(replace(STANDING, seed=seed)) as url:
        yield Service(url, KEY, lambda: [entry["operation"] for entry in Sandbox(url).asked()])


@contextmanager
def independent(seed: int) -> Iterator[Service]:
    made = account(seed, Sizes(contacts=40))
    with serve_independent(made) as server:
        yield Service(server.url, made.key, lambda: [entry.operation for entry in server.log.entries])


_IN_ATTACKS = [
    pytest.param(pair, marks=pytest.mark.attack) for pair in ((sandbox, sandbox), (independent, independent))
]


@pytest.fixture(
    params=[*_IN_ATTACKS, (sandbox, independent)],
    ids=lambda two: "-".join(service.__name__ for service in two),
)
def services(request: pytest.FixtureRequest, unrecorded: None) -> Iterator[tuple[Service, Service]]:
    """The business of the home, and another one."""
    ours, theirs = request.param
    with ours(1) as one, theirs(2) as other:
        yield one, other


@dataclass
class Held:
    """A home as it was, and what was sent until then."""

    home: Path
    services: tuple[Service, ...]
    before: Tables
    writes: int

    @classmethod
    def now(cls, home: Path, *services: Service) -> Held:
        return cls(home, services, rows(home, "source"), sum(each.writes for each in services))

    def unchanged(self) -> tuple[int, int]:
        """Rows that differ, and writes that were sent since."""
        after = rows(self.home, "source")
        changed = sum(
            len(set(map(str, self.before[name])) ^ set(map(str, after[name])))
            for name in differing(self.before, after)
        )
        return changed, sum(each.writes for each in self.services) - self.writes


def refused(command: Command, held: Held, settings: dict[str, str], *words: str) -> None:
    """Every way that a home is used in ends with 2, and nothing is loaded or sent."""
    codes = {}
    ((contact,),) = query(held.home, "select max(contact_id) from source.contacts where _deleted_at is null")
    forget = ("forget", "--contact-id", str(contact), "--apply", "--also-at-service")
    for line in (READ, (*TAGS, "--apply"), (*DELETIONS, "--apply", "--yes"), ("check",), ("doctor",), forget):
        ran = command(*line, **settings)
        codes[" ".join(word for word in line if not word.startswith("select"))] = ran.code
        for word in words:
            assert word in ran.text, ran.text
    changed, sent = held.unchanged()
    assert (changed, sent) == (0, 0)
    assert set(codes.values()) == {2}, codes


@pytest.mark.attack
@pytest.mark.parametrize("way", ["swapped", "of before", "restored"])
def test_a_home_takes_nothing_of_another_business(
    services: tuple[Service, Service], command: Command, home: Path, tmp_path: Path, way: str
) -> None:
    ours, theirs = services
    assert command(*READ, **ours.settings).code == 0
    name = identity_of(home).accounts["main"].business_name
    assert name
    if way == "of before":
        (home / FILE).unlink()
    elif way == "restored":
        backup = {"MARKETING_BACKUP_URL": str(tmp_path / "backup")}
        assert command("backup", **backup).code == 0
        shutil.rmtree(home)
        assert command("restore", **backup).code == 0
        assert command("restore", "--release").code == 0
    held, asked = Held.now(home, ours, theirs), len(theirs.asked())
    refused(command, held, theirs.settings, name, "--accept-business main")
    assert set(theirs.asked()[asked:]) == {"app/me"}
    assert query(
        home,
        "select count(*) from sync.requests where account = 'main' and outcome = 'ok' and "
        "operation = 'app/me'",
    ) == [(1,)]
    assert command("push", "cancel").code == 0
    assert command(*READ, **ours.settings).code == 0, "its own key is as good as before"
    assert command(*TAGS, "--apply", **ours.settings).code == 0


@pytest.mark.slow
@pytest.mark.parametrize("way", ["no key", "empty variables", "sandbox_url"])
def test_a_live_home_without_its_key_takes_nothing_of_the_sandbox(
    services: tuple[Service, Service], command: Command, home: Path, way: str
) -> None:
    ours, theirs = services
    assert command(*READ, **ours.settings).code == 0
    held, asked = Held.now(home, ours, theirs), len(theirs.asked())
    empty = {"MARKETING_API_KEY": "", "MARKETING_API_URL": ""}
    lost = {"no key": {}, "empty variables": empty, "sandbox_url": {"MARKETING_SANDBOX_URL": theirs.url}}[way]
    refused(command, held, lost, "live", "MARKETING_API_KEY", "MARKETING_HOME")
    assert not (home / "sandbox.jsonl").exists()
    assert len(theirs.asked()) == asked
    (home / FILE).unlink()
    assert command(*READ, **lost).code == 2, "nor does a home that an earlier version made"
    assert held.unchanged() == (0, 0)


@pytest.mark.slow
def test_a_home_of_the_sandbox_takes_nothing_of_a_live_account(
    command: Command, home: Path, unrecorded: None
) -> None:
    without = {"MARKETING_SANDBOX_CONTACTS": "100"}
    assert command(*READ, **without).code == 0
    with independent(1) as live:
        held = Held.now(home, live)
        refused(command, held, live.settings, "sandbox", "MARKETING_HOME")
        assert live.asked() == []
    assert "holds: sandbox: main is" in " ".join(command("status", **without).out.split())
    assert command(*READ, **without).code == 0


@pytest.mark.slow
def test_one_foreign_account_does_not_keep_the_others_from_being_loaded(
    command: Command, home: Path, folder: Path, unrecorded: None
) -> None:
    keys = {"north": folder / "north.key", "south": folder / "south.key"}
    with sandbox(1) as one, sandbox(2) as other:
        text = (
            "[accounts.north]\nurl = '{}'\nkey_file = '{}'\n[accounts.south]\nurl = '{}'\nkey_file = '{}'\n"
        )
        for path in keys.values():
            path.write_text(KEY)

        def name(north: Service, south: Service) -> None:
            (folder / "accounts.toml").write_text(
                text.format(north.url, keys["north"], south.url, keys["south"])
            )

        name(one, other)
        assert command(*READ).code == 0
        held = Held.now(home, one, other)
        name(other, one)
        swapped = command(*READ)
        assert swapped.code == 2
        assert swapped.text.count("--accept-business") == 2, swapped.text
        assert held.unchanged() == (0, 0)
        name(one, one)
        assert command(*READ).code == 2
        name(one, replace(one, url=one.url.replace("127.0.0.1", "localhost")))
        Sandbox(one.url).control("advance", days=3)
        partly = command(*READ)
        assert partly.code == 2, partly.text
        changed, _ = held.unchanged()
        assert changed > 0, "the account that is known was read"
        after = {
            name: {str(row) for row in table if "south" in row}
            for name, table in rows(home, "source").items()
        }
        before = {name: {str(row) for row in table if "south" in row} for name, table in held.before.items()}
        assert after == before


def test_a_business_that_is_renamed_stays_the_same_and_its_new_name_is_noted(
    command: Command, home: Path, unrecorded: None
) -> None:
    with sandbox(1) as service:
        assert command(*READ[:-2], **service.settings).code == 0
        before = (home / FILE).read_bytes()
        assert command(*READ[:-2], **service.settings).code == 0
        assert (home / FILE).read_bytes() == before
        (home / FILE).write_bytes(before.replace(b"Olive Grove Table", b"Another Name"))
        assert command(*READ[:-2], **service.settings).code == 0
        assert (home / FILE).read_bytes() == before
        assert (home / FILE).stat().st_mode & 0o777 == 0o600


@pytest.mark.slow
def test_a_change_is_confirmed_by_a_person_once_nothing_is_left_to_be_sent(
    command: Command, home: Path, unrecorded: None
) -> None:
    accept = ("check", "--accept-business", "main")
    with sandbox(1) as one, sandbox(2) as other:
        assert command(*READ, **one.settings).code == 0
        assert "nothing to confirm" in command(*accept, **one.settings).out
        assert command(*TAGS, "--apply", **other.settings).code == 2
        left = command(*accept, "--yes", **other.settings)
        assert (left.code, "push cancel" in left.err) == (2, True), left.text
        assert command("push", "cancel", **one.settings).code == 0
        assert command(*accept, **other.settings).code == 2, "nobody is there to be asked"
        assert command("check", **other.settings).code == 2
        assert command(*accept, "--yes", **other.settings).code == 0
        assert command("check", **other.settings).code == 0
        assert command("check", **one.settings).code == 2


@pytest.mark.slow
def test_a_home_does_not_begin_with_another_homes_place(
    command: Command, home: Path, tmp_path: Path, unrecorded: None
) -> None:
    place = {"MARKETING_BACKUP_URL": str(tmp_path / "place")}
    with sandbox(1) as one, sandbox(2) as other:
        assert command(*READ, **one.settings, **place).code == 0
        before = sorted(tmp_path.glob("place/**/*"))
        assert before
        ran = command(*READ, **other.settings, **place, MARKETING_HOME=str(tmp_path / "second"))
        assert (ran.code, "another home" in ran.err) == (2, True), ran.text
        assert other.asked() == []
        assert sorted(tmp_path.glob("place/**/*")) == before
        assert command(*READ, **one.settings, **place).code == 0


def test_a_home_does_not_begin_with_another_homes_shard_of_the_lake(
    command: Command, tmp_path: Path, unrecorded: None
) -> None:
    published = Published(dt.datetime.now(dt.UTC), None, PersonalData.KEEP, 5, 0, 0)
    manifest = msgspec.json.encode(
        Manifest("main", "20260101T000000000000Z", published, [], home_id="of another")
    )
    Storage(str(tmp_path / "lake")).write("shards/main/manifest.json", manifest)
    with sandbox(1) as service:
        ran = command(*READ, **service.settings, MARKETING_LAKE_URL=str(tmp_path / "lake"))
        assert (ran.code, "another home" in ran.err) == (2, True), ran.text
        assert service.asked() == []


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_a_job_of_dagster_with_another_accounts_key_loads_and_sends_nothing(
    services: tuple[Service, Service], command: Command, home: Path
) -> None:
    ours, theirs = services
    assert command(*READ, **ours.settings).code == 0
    held, asked = Held.now(home, ours, theirs), len(theirs.asked())
    definitions = build_definitions(Settings(home, (Connection("main", theirs.url, Secret(theirs.key)),)))
    deletions = {
        "ops": {
            "plan_deletions": {
                "config": {"sql": PEOPLE, "dry_run": False, "confirm": "send", "confirmed_rows": 2}
            }
        }
    }
    with dagster_home(home), dg.DagsterInstance.ephemeral() as instance:
        for job, run_config in (("nightly_sync", {}), ("push_deletions", deletions)):
            ran = definitions.resolve_job_def(job).execute_in_process(
                run_config, instance, raise_on_error=False
            )
            assert not ran.success
            told = [str(event.step_failure_data.error) for event in ran.all_events if event.is_step_failure]
            assert any("--accept-business main" in text for text in told), told
    assert held.unchanged() == (0, 0)
    assert set(theirs.asked()[asked:]) == {"app/me"}
