"""A home knows whose data it holds: nothing of another business is loaded, and nothing is sent to it."""

import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar

import dagster as dg
import pytest
import requests
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace as replace_struct

from home.exits import HomeError
from home.folder import dagster_home, prepare_home
from home.identity import FILE, Owner, find_difference, identity_of, note_owner
from home.settings import Settings
from marketing_api.client import Connection, Secret
from marketing_api.errors import OtherBusiness
from pipelines.definitions import build_definitions
from tests.dialects.server import serve
from tests.fixtures import STANDING, Command
from tests.independent.generate import Sizes, account
from tests.independent.server import serve as serve_independent
from tests.pipelines.sandboxes import KEY, Sandbox
from tests.pipelines.tables import Tables, differing, query, rows
from tests.waiting import HANGS_S

_NAMES = st.sampled_from([None, "Harbor Coffee", "Olive Grove Table"])
_OWNERS = st.builds(
    Owner,
    business_id=st.sampled_from([None, 4001, 4002]),
    business_name=_NAMES,
    service_name=st.sampled_from([None, "harbor"]),
    address=st.sampled_from(["https://api.example.com/1", "https://api.example.com/north/1"]),
)


# ---- the rule


@given(_OWNERS, _OWNERS)
def test_a_business_is_the_same_only_at_its_address_and_by_its_id(known: Owner, found: Owner) -> None:
    assert find_difference(known, known) == ""
    is_same = not find_difference(known, found)
    if known.address != found.address:
        assert not is_same, "each service counts its own ids"
    elif None not in (known.business_id, found.business_id):
        assert is_same == (known.business_id == found.business_id), "the service renames businesses"
    elif known.is_named and known.business_name != found.business_name:
        assert not is_same


HERE = "https://api.example.com/1"
HARBOR = Owner(1, "Harbor Coffee", "harbor", HERE)


@pytest.mark.parametrize(
    ("known", "found", "why"),
    [
        (HARBOR, replace_struct(HARBOR, business_name="Harbor Tea", service_name="tea"), ""),
        (HARBOR, replace_struct(HARBOR, address="http://api.example.com/1"), "the address has changed"),
        (HARBOR, replace_struct(HARBOR, address="https://api.example.com:8443/1"), "the address"),
        (HARBOR, replace_struct(HARBOR, address="https://api.example.com/north/1"), "the address"),
        (HARBOR, replace_struct(HARBOR, address="https://api.example.org/1"), "the address"),
        (HARBOR, replace_struct(HARBOR, business_id=2), "another business"),
        (HARBOR, replace_struct(HARBOR, business_id=None), ""),
        (HARBOR, Owner(address=HERE), "another business"),
        (replace_struct(HARBOR, address=None), HARBOR, "doesn't record from which address"),
        (Owner(), HARBOR, ""),
        (Owner(address=HERE), HARBOR, ""),
        (Owner(None, "Harbor Coffee", None, HERE), Owner(None, "Harbor Coffee", "harbor", HERE), ""),
    ],
    ids=[
        "renamed",
        "another scheme",
        "another port",
        "another path",
        "another host",
        "another id",
        "no id tonight",
        "no name tonight",
        "address unknown",
        "new home",
        "named for the first time",
        "short name read since",
    ],
)
def test_which_business_is_the_same(known: Owner, found: Owner, why: str) -> None:
    assert why in find_difference(known, found)
    assert bool(why) == bool(find_difference(known, found))


# ---- over HTTP, with both servers

READ = ("sync", "--reads-only", "--only", "business", "lists", "contacts")
_READS = {"app/me", "emailmarketing/getlists", "emailmarketing/getlist", "emailmarketing/getcontacts"}
PEOPLE = (
    "select contact_id, any_value(list_id) as list_id from source.contacts where _deleted_at "
    "is null group "
    "by 1 order by 1 limit 2"
)
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
    def now(cls, home: Path, *services: Service) -> "Held":
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
    call = ("call", "emailmarketing/addtag", "email=ann@example.com", "tagname=vip", "--yes")
    for line in (READ, (*TAGS, "--apply"), call, ("doctor",)):
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
        backup = {"MARKETING_BACKUP_DIR": str(tmp_path / "backup")}
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
    if way == "of before":
        assert "doesn't record from which address" in command(*READ, **ours.settings).err
        assert command("doctor", "--accept-business", "main", "--yes", **ours.settings).code == 0
    assert command(*READ, **ours.settings).code == 0, "its own key is as good as before"
    written = ours.writes
    command(*TAGS, "--apply", **ours.settings)
    assert ours.writes > written, "a push is sent (the independent service refuses all writes)"


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
    words = (
        ("MARKETING_HOME", "live") if way == "sandbox_url" else ("no key is configured", "MARKETING_API_KEY")
    )
    refused(command, held, lost, *words)
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
    assert command(*READ, "--sandbox", **without).code == 0
    with independent(1) as live:
        held = Held.now(home, live)
        refused(command, held, live.settings, "sandbox", "MARKETING_HOME")
        assert live.asked() == []
    assert "holds: sandbox: main is" in " ".join(command("status", **without).out.split())
    assert command(*READ, "--sandbox", **without).code == 0


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


def test_account_under_a_new_name_is_refused(
    command: Command, home: Path, folder: Path, unrecorded: None
) -> None:
    with sandbox(1) as one:
        assert command(*READ, **one.settings).code == 0
        held = Held.now(home, one)
        (folder / "key").write_text(KEY)
        (folder / "accounts.toml").write_text(f"[accounts.new]\nurl = '{one.url}'\nkey_file = 'key'\n")
        refused(command, held, {})
        assert "Use the name main instead of new" in command("doctor").out


def test_one_business_is_one_account_also_when_both_names_are_new(tmp_path: Path) -> None:
    note_owner(Settings(tmp_path), "main", HARBOR)
    with pytest.raises(OtherBusiness, match="as the account main: nothing was loaded"):
        note_owner(Settings(tmp_path), "second", HARBOR)


class Gateway(BaseHTTPRequestHandler):
    """Several services behind one host, each below a path of its own."""

    services: ClassVar[dict[str, Service]]

    def do_GET(self) -> None:
        _, path, rest = self.path.split("/", 2)
        length = int(self.headers.get("Content-Length", 0))
        kind = {"Content-Type": "application/x-www-form-urlencoded"} if length else {}
        reply = requests.request(
            self.command,
            f"{self.services[path].url.removesuffix('/1')}/{rest}",
            data=self.rfile.read(length),
            headers=kind,
            timeout=HANGS_S,
        )
        self.send_response(reply.status_code)
        self.send_header("Content-Length", str(len(reply.content)))
        self.end_headers()
        self.wfile.write(reply.content)

    do_POST = do_GET  # noqa: N815 - as the base class looks it up

    def log_message(self, format: str, *args: object) -> None:
        """Quiet."""


@contextmanager
def behind_one_host(**services: Service) -> Iterator[list[Service]]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Gateway) as server:
        Gateway.services = services
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        host = f"http://127.0.0.1:{server.server_address[1]}"
        yield [replace(service, url=f"{host}/{path}/1") for path, service in services.items()]
        server.shutdown()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("seed", "is_path"),
    [(1001, False), (1, True)],
    ids=["another port, the same id", "another path, the same id and name"],
)
def test_another_address_is_refused_until_a_person_confirms_it(
    command: Command, home: Path, unrecorded: None, seed: int, *, is_path: bool
) -> None:
    with ExitStack() as stack:
        ours, theirs = (stack.enter_context(sandbox(number)) for number in (1, seed))
        if is_path:
            ours, theirs = stack.enter_context(behind_one_host(north=ours, south=theirs))
        assert command(*READ, **ours.settings).code == 0
        noted = identity_of(home).accounts["main"]
        assert (noted.business_id, noted.address) == (4001, ours.url)
        held, asked = Held.now(home, ours, theirs), len(theirs.asked())
        refused(command, held, theirs.settings, theirs.url, "--accept-business main")
        assert set(theirs.asked()[asked:]) == {"app/me"}
        assert command("push", "cancel").code == 0

        respelled = {"MARKETING_API_URL": f"{ours.url.replace('http', 'HTTP')}//"}
        assert command(*READ, **ours.settings | respelled).code == 0, "the same address"
        accept = ("doctor", "--accept-business", "main")
        asked_for = command(*accept, **theirs.settings)
        assert (asked_for.code, "the address has changed" in asked_for.err) == (2, True), asked_for.text
        assert command(*accept, "--yes", **theirs.settings).code == 0
        assert command("call", "app/me", **theirs.settings).code == 0
        writes = theirs.writes
        assert command(*TAGS, "--apply", **theirs.settings).code in (0, 1)  # strangers have other ids
        assert theirs.writes > writes
        assert command("call", "app/me", **ours.settings).code == 2
        assert ours.writes == held.writes


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
    accept = ("doctor", "--accept-business", "main")
    with sandbox(1) as one, sandbox(2) as other:
        assert command(*READ, **one.settings).code == 0
        assert "nothing to confirm" in command(*accept, **one.settings).out
        assert command(*TAGS, "--apply", **other.settings).code == 2
        left = command(*accept, "--yes", **other.settings)
        assert (left.code, "push cancel" in left.err) == (2, True), left.text
        assert command("push", "cancel", **one.settings).code == 0
        assert command(*accept, **other.settings).code == 2, "nobody is there to be asked"
        assert command("call", "app/me", **other.settings).code == 2
        assert command(*READ, "--max-requests", "4", **one.settings).code == 1
        assert command(*accept, "--yes", **other.settings).code == 0
        assert command("call", "app/me", **other.settings).code == 0
        assert command("call", "app/me", **one.settings).code == 2
        asked = len(other.asked())
        assert command(*READ, "--accept-shrink", **other.settings).code == 0
        assert set(other.asked()[asked:]) == _READS, "what the first one sent was used for the other one"


@pytest.mark.slow
def test_a_home_does_not_begin_with_another_homes_place(
    command: Command, home: Path, tmp_path: Path, unrecorded: None
) -> None:
    place = {"MARKETING_BACKUP_DIR": str(tmp_path / "place")}
    with sandbox(1) as one, sandbox(2) as other:
        assert command(*READ, **one.settings, **place).code == 0
        before = sorted(tmp_path.glob("place/**/*"))
        assert before
        ran = command(*READ, **other.settings, **place, MARKETING_HOME=str(tmp_path / "second"))
        assert (ran.code, "another home" in ran.err) == (2, True), ran.text
        assert other.asked() == []
        assert sorted(tmp_path.glob("place/**/*")) == before
        assert command(*READ, **one.settings, **place).code == 0


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_a_job_of_dagster_with_another_accounts_key_loads_and_sends_nothing(
    services: tuple[Service, Service], command: Command, home: Path
) -> None:
    ours, theirs = services
    assert command(*READ, **ours.settings).code == 0
    held, asked = Held.now(home, ours, theirs), len(theirs.asked())
    definitions = build_definitions(Settings(home, (Connection("main", theirs.url, Secret(theirs.key)),)))
    tags = {"ops": {"plan_tags": {"config": {"sql": TAGS[-1], "dry_run": False, "confirm": "send"}}}}
    with dagster_home(home), dg.DagsterInstance.ephemeral() as instance:
        for job, run_config in (("nightly_sync", {}), ("push_tags", tags)):
            ran = definitions.resolve_job_def(job).execute_in_process(
                run_config, instance, raise_on_error=False
            )
            assert not ran.success
            told = [str(event.step_failure_data.error) for event in ran.all_events if event.is_step_failure]
            assert any("--accept-business main" in text for text in told), told
    assert held.unchanged() == (0, 0)
    assert set(theirs.asked()[asked:]) == {"app/me"}


def test_an_identity_that_is_no_text_is_named(home: Path) -> None:
    (prepare_home(home) / FILE).write_bytes(b'{"home_id": "on\xf6e"}')
    with pytest.raises(HomeError, match="can't be read"):
        identity_of(home)
