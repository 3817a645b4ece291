"""Wrong input, and a world that does not play along: a few lines, the right exit code, no traceback."""

import io
import json
import re
import resource
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count, takewhile
from pathlib import Path
from threading import Event
from typing import Any

import duckdb
import pytest

from home.interrupts import STOPPING
from home.progress import report_waiting
from marketing_api.sandbox.app import Rule
from marketing_api.sandbox.rules import CheckedCall
from marketing_sync import cli
from tests.dialects.server import Options, serve
from tests.fixtures import STANDING, Command, StartSandbox
from tests.marketing_api.scripted_server import Asked, Reply, ScriptedServer
from tests.pipelines.running import Ran, finish, start, start_cold
from tests.pipelines.sandboxes import Sandbox, put_in
from tests.ports import free_port
from tests.waiting import HANGS_S, wait_until

PROGRAM = Path(sys.executable).name

NOBODY = "http://127.0.0.1:9/1"


def says(ran: Ran, code: int, *words: str) -> None:
    """The exit code, every one of `words`, in few lines and without a traceback."""
    assert ran.code == code, ran.text
    assert "Traceback" not in ran.text
    assert len(list(filter(None, ran.text.splitlines()))) <= 5, ran.text
    for word in words:
        assert word in ran.text


@pytest.fixture
def warehouse(home: Path, empty_tables: Path) -> Path:
    """A warehouse file with all its tables, empty."""
    shutil.copytree(empty_tables.parent, home)
    return home / empty_tables.name


# -- what was typed


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["sync", "--only", "contcats"], "no asset or table is named contcats"),
        (["sync", "--from", "2026-02-30"], "'2026-02-30' is not a day"),
        (["sync", "--from", "2026-03-01", "--to", "2026-02-01"], "2026-03-01 is after --to 2026-02-01"),
        (["sync", "--to", "2026-02-01"], "--to needs --from"),
        (["sync", "--max-requests", "0"], "a whole number above 0"),
        (["sync", "--max-requests", "many"], "a whole number above 0"),
        (["snyc"], "No such command 'snyc'. Did you mean 'sync'?"),
        (["call", "emailmarketing/getcontcat"], "did you mean emailmarketing/getcontact"),
        (["call", "emailmarketing/getcontact", "idd=3"], "did you mean id?"),
        (["call", "emailmarketing/getcontact"], "id is required"),
        (["call", "emailmarketing/getcontact", "12"], "'12' is not a parameter"),
        (["call", "reputation/direct", "filter=yesterday"], "allowed: today"),
        (["call", "reputation/direct", "filter=date", "from=soon"], "a date is needed"),
        (["call", "app/me", "--account", "other"], "no account is named 'other'; choose one of these: main"),
        (["forget", "ann@example.com,Ann"], "'ann@example.com,Ann' is not an e-mail address"),
        (["push", "nosuch", "people.csv"], "No such command 'nosuch'"),
        (["push", "status", "--account", "man"], "no account is named 'man' (did you mean main?)"),
        (["ui", "--port", "many"], "'many' is not a port; it takes a number from 1 to 65535"),
        (["ui", "--port", "99999"], "'99999' is not a port; it takes a number from 1 to 65535"),
    ],
)
def test_a_wrong_call_names_the_mistake_and_costs_no_request(
    command: Command, sandbox: Sandbox, words: list[str], said: str
) -> None:
    before = sandbox.count
    says(command(*words, sandbox=sandbox), 2, said)
    assert sandbox.count == before


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        (".env", "MARKETING_API_KEY=x\nnot a setting\n", ".env, line 2"),
        (".env", "MARKETING_LOOKBACK_DAYS=soon\n", "MARKETING_LOOKBACK_DAYS='soon'"),
        ("accounts.toml", "[accounts.a\n", "accounts.toml cannot be read"),
    ],
)
@pytest.mark.parametrize(
    "words", [["sync"], ["doctor"], ["status"], ["call", "app/me"], ["rebuild"]], ids=lambda words: words[0]
)
def test_a_malformed_file_is_named(
    command: Command, folder: Path, words: list[str], name: str, content: str, said: str
) -> None:
    (folder / name).write_text(content)
    says(command(*words), 2, said)


@pytest.mark.parametrize("words", [["sync"], ["call", "app/me"]], ids=lambda words: words[0])
def test_missing_key_is_named_by_commands_that_need_it(
    command: Command, folder: Path, words: list[str]
) -> None:
    (folder / "accounts.toml").write_text('[accounts.a]\nurl = "https://x/1"\nkey_env = "ABSENT"\n')
    says(command(*words), 2, "ABSENT (key_env) is not set")


@pytest.mark.parametrize(
    "settings",
    [
        {"MARKETING_API_URL": "k-123456", "MARKETING_API_KEY": "https://h/1"},
        {"MARKETING_API_URL": "https://h/1?key=k-123456", "MARKETING_API_KEY": "x"},
        {"MARKETING_API_URL": "https://me:k-123456@h/1", "MARKETING_API_KEY": "x"},
    ],
)
def test_a_key_in_the_wrong_place_is_not_shown(command: Command, settings: dict[str, str]) -> None:
    ran = command("call", "app/me", **settings)
    says(ran, 2, "MARKETING_API_URL: not an address")
    assert "k-123456" not in ran.text


def test_a_key_in_accounts_toml_is_not_shown(command: Command, folder: Path) -> None:
    (folder / "accounts.toml").write_text('[accounts.a]\nurl = "https://x/1"\nkey_env = "k-123456"\n')
    ran = command("call", "app/me")
    says(ran, 2, "name of the environment variable")
    assert "k-123456" not in ran.text


def test_an_unknown_log_level_is_named(command: Command) -> None:
    says(command("status", MARKETING_LOG="loud"), 2, "MARKETING_LOG='loud'")


def test_a_port_that_is_taken_is_said(command: Command) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = str(other.getsockname()[1])
        taken = f"port {port} cannot be used (Address already in use)"
        says(command("ui", "--sandbox", "--port", port), 2, taken, "--port")


# -- the service


@pytest.mark.parametrize("words", [["sync"], ["call", "app/me"]], ids=lambda words: words[0])
def test_a_wrong_key_is_said(command: Command, sandbox: Sandbox, words: list[str]) -> None:
    ran = command(*words, sandbox=sandbox, MARKETING_API_KEY="wr0ng")
    says(ran, 2, "the key is missing, wrong or revoked")


def test_no_server_is_said_with_its_address(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("marketing_api.retry.TRIES", 2)
    live = {"MARKETING_API_URL": NOBODY, "MARKETING_API_KEY": "k"}
    says(command("sync", **live), 1, "refused", NOBODY)
    says(command("call", "app/me", **live), 1, "refused", NOBODY)


def test_an_address_that_is_no_such_service_is_said(command: Command, sandbox: Sandbox) -> None:
    """A wrong address looks like a wrong key: anyone who left out the version is told so."""
    address = sandbox.url.removesuffix("/1")
    ran = command("call", "app/me", sandbox=sandbox, MARKETING_API_URL=address)
    says(ran, 2, f"{address} does not end in /1")


@pytest.mark.parametrize("switch", ["1002", "401"])
@pytest.mark.slow
def test_a_key_revoked_in_the_middle_stops_the_asking_and_is_said(command: Command, switch: str) -> None:
    """The service says 1002 to a refused key as it does to an operation that an account lacks (observation 1)."""
    with serve(Options(contacts=100, rate_limit=0, revoke_after=60, switches={"bad-key": switch})) as url:
        service = Sandbox(url)
        ran = command("sync", "--only", "lists", "contacts", "timelines", "coupons", sandbox=service)
        assert ran.code == 1, ran.text
        assert "the key is missing, wrong or revoked" in ran.text
        assert "not available to this account" not in ran.text
        assert "Traceback" not in ran.text
        assert service.count < 60 + 70, "it went on asking"


def test_a_known_refusal_of_a_write_by_hand_says_what_to_do(command: Command) -> None:
    """observations 45 and 50."""
    texts = ("name=n", "subject=s", "body=b", "from_name=f", "type=standard")
    texts += ("fromemail=a@example.org", "reply_to=a@example.org")
    new = ("email=new@example.com", "listid=1801", "status=Active")
    switches = {"sender-domain": "verified", "contact-exists": "item"}
    with serve(Options(contacts=100, rate_limit=0, switches=switches)) as url:

        def call(operation: str, *values: str) -> Ran:
            return command("call", f"emailmarketing/{operation}", *values, "--yes", sandbox=Sandbox(url))

        to_do = "to do: verify the domain in the service's settings"
        says(call("addcampaign", *texts), 1, "The sender domain is not verified", to_do)
        assert call("addcontact", *new).code == 0
        to_do = "to do: nothing; to change the contact, call `emailmarketing/synccontact`"
        says(call("addcontact", *new), 1, "The contact already exists", to_do)


def test_a_write_whose_response_begins_with_a_byte_order_mark_is_printed(
    command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    header = '{"status": "ok", "dataType": "array"}'
    data = {"app/me": '{"business": {"businessName": "Harbor"}}'}
    data["emailmarketing/addtag"] = '{"item": "Tagged"}'

    def respond(asked: Asked) -> Reply:
        response = f'{{"header": {header}, "data": {data[asked.operation]}}}'
        return Reply(body=f'\ufeff{{"response": {response}}}'.encode())

    with ScriptedServer(respond) as server:
        words = ("call", "emailmarketing/addtag", "email=ann@example.com", "tagname=vip", "--yes")
        ran = command(*words, MARKETING_API_URL=server.url, MARKETING_API_KEY="k3y-of-us")
    assert (ran.code, json.loads(ran.out)) == (0, {"item": "Tagged"})


def test_a_variable_that_is_no_setting_is_named(command: Command) -> None:
    assert "MARKETING_RATE is not a known setting" in command("status", "--sandbox", MARKETING_RATE="abc").err


def test_without_a_temporary_directory_it_says_what_to_set(
    command: Command, sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    def find_none() -> str:
        raise FileNotFoundError("No usable temporary directory found")

    monkeypatch.setattr("tempfile.gettempdir", find_none)
    says(
        command("call", "app/me", sandbox=sandbox),
        2,
        "in a temporary directory, but none can be written",
        "set TMPDIR",
    )


def test_a_stream_of_another_encoding_is_written_in_utf8(monkeypatch: pytest.MonkeyPatch) -> None:
    written = io.BytesIO()
    monkeypatch.setattr("sys.stdout", io.TextIOWrapper(written, encoding="ascii"))
    assert cli.main(["--version"]) == 0
    print("Zoë", flush=True)
    assert written.getvalue().decode().endswith("Zoë\n")


# -- the home


def test_a_home_that_is_a_file_is_named(command: Command, home: Path, sandbox: Sandbox) -> None:
    home.write_text("")
    for words in (["sync"], ["rebuild"], ["ui", "--port", str(free_port())]):
        says(command(*words, sandbox=sandbox), 2, str(home), "MARKETING_HOME")


def test_a_home_that_cannot_be_written_is_named(command: Command, sandbox: Sandbox) -> None:
    ran = command("sync", sandbox=sandbox, MARKETING_HOME="/proc/nowhere")
    says(ran, 2, "/proc/nowhere", "MARKETING_HOME")


# -- the warehouse file


def test_status_without_a_warehouse_says_what_to_do(command: Command) -> None:
    says(command("status"), 0, "run `marketing-sync sync`")


COMMANDS = pytest.mark.parametrize(
    "words", [["sync", "--only", "users"], ["status"], ["rebuild"]], ids=lambda words: words[0]
)


@COMMANDS
def test_a_warehouse_of_a_newer_version_is_left_alone(
    command: Command, sandbox: Sandbox, warehouse: Path, words: list[str]
) -> None:
    with duckdb.connect(str(warehouse)) as connection:
        connection.execute("update sync.meta set value = '99' where name = 'schema_version'")
    before, asked = warehouse.read_bytes(), sandbox.count
    says(command(*words, sandbox=sandbox), 2, "schema version 99", "upgrade marketing-sync")
    assert warehouse.read_bytes() == before
    assert sandbox.count == asked


@COMMANDS
def test_a_file_of_somebody_else_is_left_alone(
    command: Command, sandbox: Sandbox, home: Path, words: list[str]
) -> None:
    home.mkdir()
    with duckdb.connect(str(home / "warehouse.duckdb")) as connection:
        connection.execute("create table theirs (id integer)")
    says(command(*words, sandbox=sandbox), 1, "tables of something else", "choose another home")
    with duckdb.connect(str(home / "warehouse.duckdb")) as connection:
        assert connection.execute("select table_name from duckdb_tables()").fetchall() == [("theirs",)]


@COMMANDS
@pytest.mark.parametrize("damage", ["text", "cut", "scratched"])
def test_a_damaged_file_is_named_with_the_way_out(
    command: Command, sandbox: Sandbox, warehouse: Path, words: list[str], damage: str
) -> None:
    whole = warehouse.read_bytes()
    scratched = b"".join(whole[at : at + 4000] + b"x" * 96 for at in range(0, len(whole), 4096))
    contents = {"text": b"no database\n" * 1000, "cut": whole[:20_000]}
    contents["scratched"] = whole[:4096] + scratched[4096:]
    damaged = contents[damage]
    warehouse.write_bytes(damaged)
    says(command(*words, sandbox=sandbox), 1, "is damaged", "`marketing-sync restore`", "move it away")
    assert warehouse.read_bytes() == damaged


@contextmanager
def held(path: Path, seconds: float) -> Iterator[subprocess.Popen[str]]:
    """Another program that has the file open."""
    code = f"import duckdb, time; c = duckdb.connect({str(path)!r}); print('held', flush=True); "
    code += f"time.sleep({seconds})"
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        process.stdout.readline()
        yield process
        process.kill()


@COMMANDS
def test_a_warehouse_that_another_program_holds_is_said(
    command: Command, sandbox: Sandbox, warehouse: Path, words: list[str]
) -> None:
    with held(warehouse, 60) as holder:
        ran = command(*words, sandbox=sandbox, MARKETING_LOCK_SECONDS="1")
    says(ran, 1, f"in use by {PROGRAM} (process {holder.pid}); waited 1 s")


@pytest.mark.slow
def test_a_warehouse_that_becomes_free_in_time_is_used(
    command: Command, warehouse: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = [report_waiting, lambda _: holder.kill()]
    monkeypatch.setattr("home.door.report_waiting", lambda who: [each(who) for each in told])
    with held(warehouse, 3600) as holder:
        ran = command("status", MARKETING_LOCK_SECONDS="60")
    assert ran.code == 0, ran.text
    assert f"waiting for {PROGRAM} (process {holder.pid})" in ran.err


# -- writes by hand


@pytest.mark.parametrize(
    "stdin",
    [io.StringIO(), io.StringIO("n\n"), io.StringIO("\n"), None],
    ids=["end", "no", "empty", "closed"],
)
def test_a_write_that_nobody_agrees_to_sends_nothing_and_is_not_done(
    command: Command, sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch, stdin: io.StringIO | None
) -> None:
    monkeypatch.setattr("sys.stdin", stdin)
    before = sandbox.count
    ran = command("call", "emailmarketing/addtag", "email=ann@example.com", "tagname=vip", sandbox=sandbox)
    says(ran, 1, "nothing was sent", "emailmarketing/addtag (write) on account main")
    assert sandbox.count == before


# -- the disk


@pytest.mark.attack
@pytest.mark.parametrize("limit", [90_000, 600_000])
def test_a_full_disk_is_said_and_the_next_run_goes_on(
    start_sandbox: StartSandbox, home: Path, command: Command, limit: int
) -> None:
    """The largest file may have that many bytes; which file hits the limit first differs."""
    service = start_sandbox()
    words = ("sync", "--only", "lists", "contacts", "timelines")
    process = start(home, service, *words)
    resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (limit, limit))
    ran = finish(process)
    assert ran.code == 1, ran.text
    assert "Traceback" not in ran.text
    assert "the disk is full" in ran.text or "free some" in ran.text
    again = command(*words, sandbox=service)
    assert again.code == 0, again.text
    asked = [(entry["operation"], str(entry["params"])) for entry in service.asked()]
    assert len(asked) - len(set(asked)) <= 70, "more was asked again than was under way or did not fit"
    with duckdb.connect(str(home / "warehouse.duckdb"), read_only=True) as connection:
        sql = "select count(distinct contact_id) from source.timeline_events"
        assert connection.execute(sql).fetchone() > (90,)


# -- Ctrl-C


def catches(pid: int, number: int) -> bool:
    """Whether the process handles the signal by itself."""
    caught = re.search(r"^SigCgt:\s*(\w+)$", Path(f"/proc/{pid}/status").read_text(), re.MULTILINE)
    return caught is not None and bool(int(caught[1], 16) >> (number - 1) & 1)


def interrupted(
    home: Path, service: Sandbox, words: tuple[str, ...], number: int, requests: int, *operations: str
) -> Ran:
    """The command, with a signal at so many requests of these operations, or of all, to a sandbox in this
    process: it is answered when the signal is noticed."""
    counted, is_reached, is_noticed = count(1), Event(), Event()

    def hold(call: CheckedCall, rule: Rule) -> Any:
        if next(counted) == requests:
            is_reached.set()
            is_noticed.wait(HANGS_S)
        return rule(call)

    with pytest.MonkeyPatch.context() as patch:
        put_in(patch, hold, *operations)
        process = start(home, service, *words)
        is_reached.wait(HANGS_S)
        process.send_signal(number)
        said = list(takewhile(lambda line: STOPPING not in line, process.stderr))
        is_noticed.set()
        ran = finish(process)
    return Ran(ran.code, ran.out, "".join(said) + ran.err)


@pytest.mark.slow
def test_a_signal_ends_the_sync_and_loses_nothing(home: Path, command: Command) -> None:
    """Of a service manager, and of Ctrl-C."""
    words = ("sync", "--only", "lists", "contacts", "timelines")
    with serve(STANDING) as url:
        service = Sandbox(url)
        for number, requests in ((signal.SIGTERM, 30), (signal.SIGINT, 10)):
            ran = interrupted(home, service, words, number, requests)
            says(ran, 130, "stopped; everything received so far is kept")
            assert "FATAL" not in ran.text
        stopped_at = service.count
        assert command(*words, sandbox=service).code == 0
        asked = [(entry["operation"], str(entry["params"])) for entry in service.asked()]
    again = [entry for entry in asked[stopped_at:] if entry in asked[:stopped_at]]
    assert len(again) <= 3, again


@pytest.mark.parametrize("seconds", [0.0, 0.8])
@pytest.mark.slow
def test_an_interrupt_at_the_start_ends_it_at_once(
    home: Path, start_sandbox: StartSandbox, seconds: float
) -> None:
    """So long after the signals are handled; before, Python itself is starting."""
    service = start_sandbox("--fault-stall", "1", "--stall-seconds", "600")
    process = start_cold(home, service, "sync", "--only", "lists")
    wait_until(lambda: catches(process.pid, signal.SIGTERM))
    time.sleep(seconds)
    process.send_signal(signal.SIGINT)
    ran = finish(process)
    says(ran, 130, "stopped; everything received so far is kept")
