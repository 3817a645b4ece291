"""`marketing-sync push`: what is told, what is sent, what is left behind, and with which exit code."""

import csv
import errno
import io
import os
import re
import shlex
import signal
import sys
from dataclasses import replace
from pathlib import Path
from unittest.mock import Mock

import pytest

from home.settings import Settings
from marketing_api.client import Connection, Secret
from tests.dialects.server import serve
from tests.fixtures import STANDING, UNMISTAKABLE, Command
from tests.marketing_sync.test_cli_errors import interrupted, says
from tests.pipelines.leftovers import contents
from tests.pipelines.running import Ran, run
from tests.pipelines.sandboxes import KEY, Sandbox, move_account
from tests.pipelines.tables import query
from warehouse.connection import open_database
from write_back import kinds
from write_back.order import Order
from write_back.outbox.outbox import open_outbox
from write_back.push_service import enqueue_push, plan_push

ACTIVE = "select distinct email from source.contacts where status = 'active' order by email limit 12"
TAGS = ("push", "tags", "--sql", f"select email, 'vip' as tag from ({ACTIVE})")
ONE = ["push", "tags", "--sql", "select 1"]


def write(folder: Path, name: str, *lines: str) -> str:
    (folder / name).write_text("\n".join(lines) + "\n", encoding="utf-8")
    return name


def sent(service: Sandbox, since: int = 0) -> list[str]:
    return [entry["operation"].removeprefix("emailmarketing/") for entry in service.asked(since)]


# -- the plan


def test_a_plan_sends_nothing_and_ends_with_the_command_that_sends_it(
    command: Command, service: Sandbox, home: Path
) -> None:
    ran = command(*TAGS, sandbox=service)
    assert ran.code == 0, ran.text
    assert re.search(r"new\s+12\b", ran.out)
    assert "13 requests" in ran.out, "one of them asks whose account it is"
    assert ran.out.rstrip().endswith("--apply")
    assert service.count == 0
    assert not query(home, "from sync.writebacks")
    assert command("push", "status", sandbox=service).out.strip() == "nothing has been pushed yet"


def test_a_plan_shows_what_changes(command: Command, service: Sandbox, home: Path, folder: Path) -> None:
    of_list = "from source.list_fields f where label = 'City' and f.list_id = c.list_id"
    sql = f"select email, list_id, custom_fields ->> (select field_id {of_list}) from source.contacts c"
    ((email, list_id, city),) = query(home, f"{sql} where status = 'active' order by 1, 2 limit 1")
    rows = (f"{email},{list_id},{city}", f"new@example.com,{list_id},Rome", f"{email},9999,x")
    name = write(folder, "people.csv", "email,list,city", *rows)
    ran = command("push", "contacts", "--from", name, sandbox=service)
    assert ran.code == 1, ran.text  # a third of the rows is bad
    assert re.search(r"unchanged\s+1\b", ran.out)
    assert re.search(r"new\s+1\b", ran.out)
    assert "row 4: there is no list" in ran.out
    assert "nothing was sent: 1 row is invalid, and at most 0 may be invalid, 5 % of 3 rows" in ran.out
    changed = write(folder, "people.csv", "email,list,city", f"{email},{list_id},{city}ville")
    ran = command("push", "contacts", "--from", changed, sandbox=service)
    assert f"{email}  city: {city} → {city}ville" in ran.out


def test_a_file_with_usual_headers_needs_no_map_and_the_plan_says_what_it_took_them_for(
    command: Command, service: Sandbox, home: Path, folder: Path
) -> None:
    ((email,),) = query(home, "select min(email) from source.contacts where status = 'active'")
    name = write(folder, "tags.csv", "E-Mail,Tag(s)", f"{email},vip", "new@example.com,vip")
    planned = command("push", "tags", "--from", name, sandbox=service)
    assert planned.code == 0, planned.text
    assert 'email ← "E-Mail"' in planned.out
    assert 'tag ← "Tag(s)"' in planned.out
    assert "1 address is not in the warehouse: rows are rejected if the service doesn't" in planned.out
    assert service.count == 0
    words = shlex.split(planned.out.rstrip().splitlines()[-1])[1:]
    assert words == ["push", "tags", "--from", name, "--apply"]
    assert "1 row not done" in command(*words, sandbox=service).out
    states = query(home, "select row_numbers, state from sync.writebacks order by 1")
    assert states == [([2], "applied"), ([3], "rejected")]


def test_a_plan_of_contacts_shows_new_ones_and_how_many_the_warehouse_does_not_know(
    command: Command, service: Sandbox, folder: Path
) -> None:
    rows = ("ann@example.com,Newsletter,Ann", "bo@example.com,Newsletter,Bo")
    name = write(folder, "people.csv", "Email Address,Liste,First Name", *rows)
    planned = command("push", "contacts", "--from", name, sandbox=service).out
    assert 'email ← "Email Address"' in planned
    assert 'list ← "Liste"' in planned
    assert "changes\n  row 2  ann@example.com  list: (empty) → Newsletter; First Name: Ann\n" in planned
    assert "2 addresses are not in the warehouse: the service adds each" in planned
    assert service.count == 0


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["push", "tags"], "either --from FILE or --sql QUERY: give one of them"),
        (["push", "tags", "--from", "no.csv"], "there is no file no.csv"),
        (["push", "tags", "--sql", "delete from source.contacts"], "has to be a SELECT"),
        (["push", "tags", "--sql", "select 1 as x"], "the input has no columns"),
        (["push", "tags", "--sql", "select 1", "--map", "email"], "'email' is not OURS=THEIRS"),
        ([*ONE, "--map", "email=a", "email=b"], "--map names one of our columns twice"),
        ([*ONE, "--reject-limit", "150%"], "'150%' is not a share"),
        ([*ONE, "--account", "other"], "choose one of these: main"),
        (["push", "status", "7"], "has no push 7"),
        (["push", "retry", "7"], "has no push 7"),
        (["push", "activations", "vip"], "no activation is named vip; there is no activations.toml here"),
    ],
)
def test_a_wrong_call_names_the_mistake_and_costs_no_request(
    command: Command, service: Sandbox, words: list[str], said: str
) -> None:
    says(command(*words, sandbox=service), 2, said)
    assert service.count == 0


def test_without_a_sync_it_says_what_to_read_first(command: Command, sandbox: Sandbox, folder: Path) -> None:
    name = write(folder, "tags.csv", "email,tag", "a@example.com,vip")
    ran = command("push", "tags", "--from", name, sandbox=sandbox)
    says(ran, 2, "marketing-sync sync --only business lists contacts")


# -- sending


def test_what_is_sent_is_sent_once_and_shown(command: Command, service: Sandbox, home: Path) -> None:
    ran = command(*TAGS, "--apply", sandbox=service)
    assert ran.code == 0, ran.text
    assert "done; 13 requests sent" in ran.out
    assert sent(service) == ["app/me", *["addtag"] * 12]
    states = query(home, "select state, count(*), sum(attempts) from sync.writebacks group by 1")
    assert states == [("applied", 12, 12)]
    last = "select job, outcome, request_count from sync.runs order by started_at desc limit 1"
    assert query(home, last) == [("push_tags", "done", 13)]
    of_requests = "sync.requests r join sync.writebacks w using (request_id) where r.operation = w.operation"
    assert query(home, f"select count(*) from {of_requests}") == [(12,)]

    assert command(*TAGS, sandbox=service).out.rstrip().endswith("nothing to send: 0 requests")
    again = command(*TAGS, "--apply", sandbox=service)
    assert again.code == 0, again.text
    assert "nothing to send: the service already has everything; 0 requests sent" in again.out
    assert service.count == 13


def test_a_few_rows_first_then_the_others(command: Command, service: Sandbox, home: Path) -> None:
    ran = command(*TAGS, "--first", "3", "--apply", sandbox=service)
    assert ran.code == 0, ran.text
    assert sent(service) == ["app/me", *["addtag"] * 3]
    rest = shlex.split(ran.out.partition("to send the other rows:")[2])
    assert rest == ["marketing-sync", *TAGS, "--apply"]
    assert command(*rest[1:], sandbox=service).code == 0
    assert sent(service).count("addtag") == 12


def test_contacts_are_read_back(command: Command, service: Sandbox, home: Path, folder: Path) -> None:
    rows = ("ann@example.com,Newsletter,Rome", "bob@example.com,Newsletter,=1+1")
    name = write(folder, "people.csv", "E-Mail,list,city", *rows)
    words = ("push", "contacts", "--from", name, "--map", "email=E-Mail", "--verify", "all", "--apply")
    ran = command(*words, sandbox=service)
    assert ran.code == 0, ran.text
    states = query(home, "select state, params ->> 'email', drift from sync.writebacks order by 2")
    assert states == [("verified", email, "{}") for email in ("ann@example.com", "bob@example.com")]
    written = service.control("written")["contacts"].values()
    assert sorted(value for each in written for value in each["values"].values() if value) == ["=1+1", "Rome"]


def test_an_answer_that_a_push_read_is_no_answer_for_a_sync(
    command: Command, service: Sandbox, home: Path, folder: Path
) -> None:
    name = write(folder, "people.csv", "email,list", "ann@example.com,Newsletter")
    ran = command("push", "contacts", "--from", name, "--verify", "all", "--apply", sandbox=service)
    assert ran.code == 0
    read = query(home, "select bytes from sync.requests where operation = 'emailmarketing/getcontactbyemail'")
    assert read
    assert {size for (size,) in read} == {0}


def test_rejected_rows_are_counted_kept_as_they_came_and_not_sent_again(
    command: Command, service: Sandbox, home: Path, folder: Path
) -> None:
    bad = ("no address,=cmd(),add", "who@example.com,vip,remove")
    name = write(folder, "tags.csv", "email,tag,action", *_tag_lines(home, 30), *bad)
    ran = command("push", "tags", "--from", name, "--apply", "--map", "tag=tag", sandbox=service)
    assert ran.code == 1, ran.text
    assert "2 rows not done" in ran.out
    text = (home / "pushes" / "1" / "rejected.csv").read_text(encoding="utf-8-sig")
    _, row, other = csv.reader(io.StringIO(text))
    assert row == ["32", "tags.csv, line 32", row[2], "1", "no address", "'=cmd()", "add"]
    assert other == ["33", "tags.csv, line 33", other[2], "1", "who@example.com", "vip", "remove"]
    assert (home / "pushes" / "1" / "rejected.csv").stat().st_mode & 0o077 == 0

    before = service.count
    again = command("push", "tags", "--from", name, "--apply", sandbox=service)
    assert again.code == 1
    assert "rejected before" in again.out
    assert service.count == before
    retried = command("push", "retry", "1", sandbox=service)
    assert "1 request to be tried again" in retried.out
    assert retried.code == 1
    assert service.count > before


def test_the_corrected_rejected_csv_can_be_pushed_as_it_is(
    command: Command, service: Sandbox, home: Path, folder: Path
) -> None:
    name = write(folder, "tags.csv", "email,tag", *_tag_lines(home, 1), "nobody at example.com,=vip")
    command("push", "tags", "--from", name, "--reject-limit", "60%", "--apply", sandbox=service)
    path = home / "pushes" / "1" / "rejected.csv"
    path.write_text(path.read_text(encoding="utf-8").replace("nobody at ", "nobody@"), encoding="utf-8")
    ran = command("push", "tags", "--from", str(path), "--apply", sandbox=service)
    tags = query(home, "select params ->> 'tagname' from sync.writebacks where push_id = 2")
    assert tags == [("=vip",)], ran.text


def _tag_lines(home: Path, count: int) -> list[str]:
    active = "select distinct email from source.contacts where status = 'active' order by 1"
    people = query(home, f"{active} limit {count}")
    return [f"{email},vip,add" if count > 1 else f"{email},vip" for (email,) in people]


def test_more_bad_rows_than_allowed_send_nothing(
    command: Command, service: Sandbox, home: Path, folder: Path
) -> None:
    name = write(folder, "tags.csv", "email,tag", *_tag_lines(home, 1), "nobody,vip")
    ran = command("push", "tags", "--from", name, "--apply", sandbox=service)
    assert ran.code == 1
    assert "nothing was sent" in ran.out
    assert service.count == 0
    other = write(folder, "other.csv", "email,tag", "somebody,vip")
    command("push", "tags", "--from", other, sandbox=service)
    kept = [path.read_text() for path in (home / "pushes" / "plan").glob("rejected-tags-*.csv")]
    held = sorted(("nobody" in text, "somebody" in text) for text in kept)
    assert held == [(False, True), (True, False)], "one plan took the other's place"


@pytest.mark.slow
def test_a_push_that_was_stopped_is_gone_on_with(command: Command, service: Sandbox, home: Path) -> None:
    service.control("faults", **{"1002": "1@emailmarketing/addtag"})
    stopped = command(*TAGS, "--apply", sandbox=service)
    assert stopped.code == 1
    assert "still open: run the same command again to resume" in stopped.out
    service.control("faults", off=1)
    planned = command(*TAGS, sandbox=service).out
    drops = "12 requests of push 1 (tags of query); `marketing-sync push cancel 1` drops what is not sent"
    assert drops in planned
    assert "13 requests (12 of them of earlier pushes), about a second" in planned
    fewer = [*TAGS[:-1], f"{TAGS[-1]} where email > (select min(email) from source.contacts) limit 9"]
    planned = command(*fewer, sandbox=service).out
    assert re.search(r"already queued\s+9\b", planned)
    assert "12 requests of push 1 (tags of query);" in planned
    ran = command(*TAGS, "--apply", sandbox=service)
    assert re.search(r"push 1: 12 rows of query .*\n\n  sent +12 ", ran.out), ran.out
    assert ran.code == 0, ran.text
    tagged = [each for each in service.control("written")["contacts"].values() if each["tags"] == ["vip"]]
    assert len({each["email"] for each in tagged}) == 12


@pytest.mark.slow
def test_what_is_planned_can_be_cancelled_also_if_the_account_was_removed(
    command: Command, service: Sandbox, home: Path, folder: Path
) -> None:
    service.control("faults", **{"1002": "1@emailmarketing/addtag"})
    command(*TAGS, "--apply", sandbox=service)
    service.control("faults", off=1)
    (folder / "accounts.toml").write_text('[accounts.a]\nurl = "https://a.example/1"\nkey_env = "A_KEY"\n')
    assert "12 requests dropped" in command("push", "cancel", "1", "--account", "main", A_KEY="k").out
    (folder / "accounts.toml").unlink()
    before = service.count
    assert command("push", "retry", sandbox=service).code == 0
    assert service.count == before
    # until the next push or sync
    assert query(home, "select distinct state from sync.writebacks") == [("planned",)]
    assert command("sync", "--only", "business", sandbox=service).code == 0
    assert query(home, "select distinct state from sync.writebacks") == [("skipped",)]
    (home / "warehouse.duckdb").unlink()
    assert command("rebuild", sandbox=service).code == 0
    assert query(home, "select state, count(*) from sync.writebacks group by 1") == [("skipped", 12)]


def test_a_refused_key_leaves_everything_open(command: Command, service: Sandbox) -> None:
    ran = command(*TAGS, "--apply", sandbox=service, MARKETING_API_KEY="another-key")
    assert ran.code == 1, ran.text
    assert "12 requests still open" in ran.out
    assert "another-key" not in ran.text


def test_a_warehouse_that_somebody_else_has_does_not_fail_a_push(
    command: Command, service: Sandbox, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from write_back.push_service import PushRun

    kept = []
    sending = PushRun.send_open

    def held(run: PushRun) -> None:
        """From the moment of sending on, somebody reads."""
        reader = open_database(home / "warehouse.duckdb", read_only=True)
        reader.__enter__()
        kept.append(reader)
        sending(run)

    monkeypatch.setattr(PushRun, "send_open", held)
    ran = command(*TAGS, "--apply", sandbox=service, MARKETING_LOCK_SECONDS="0")
    for reader in kept:
        reader.__exit__(None, None, None)
    assert ran.code == 0, ran.text
    assert "sync.writebacks follows with the next push or sync" in ran.out


def test_two_who_push_the_same_at_the_same_moment_queue_it_once(service: Sandbox, home: Path) -> None:
    settings = Settings(home, (Connection("main", service.url, Secret(KEY)),))
    order = Order(kinds.TAGS, "main", query=TAGS[-1])
    one, other = plan_push(settings, order), plan_push(settings, order)
    assert len(one.plan.items) == len(other.plan.items) == 12
    enqueue_push(settings, one, run="one")
    enqueue_push(settings, other, run="other")
    with open_outbox(home) as outbox:
        assert len(outbox.list_open("main")) == 12
        assert {entry.message for entry in outbox.list_entries(2)} == {"already queued"}


@pytest.mark.slow
def test_ctrl_c_says_what_is_open_and_the_same_command_goes_on(service: Sandbox, home: Path) -> None:
    service.control("faults", **{"rate-limit": 3})
    stopped = interrupted(home, service, (*TAGS, "--apply"), signal.SIGINT, 1, "emailmarketing/addtag")
    assert stopped.code == 130, stopped.text
    (count,) = re.findall(r"stopped; (\d+) requests? still open", stopped.err)
    assert "Run the same command again to resume" in stopped.err
    service.control("faults", **{"rate-limit": 0})
    ran = run(home, service, *TAGS, "--apply")
    assert ran.code == 0, ran.text
    assert re.search(r"push 1: 12 rows of query .*\n\n  sent +12 ", ran.out), ran.out
    assert int(count) > 0
    tags = [each for each in service.asked() if each["operation"].endswith("addtag")]
    # what was refused for the rate limit is sent again
    assert [each["outcome"] for each in tags].count("ok") == 12


# -- the embedded sandbox


@pytest.mark.slow
def test_without_a_key_it_goes_to_the_embedded_sandbox(
    command: Command, service: Sandbox, tmp_path: Path
) -> None:
    home = tmp_path / "another"
    without = {"MARKETING_SANDBOX_CONTACTS": "100", "MARKETING_HOME": str(home)}
    words = ("sync", "--sandbox", "--reads-only", "--only", "business", "lists", "contacts")
    assert command(*words, **without).code == 0
    ran = command(*TAGS, "--apply", "--sandbox", **without)
    assert ran.code == 0, ran.text
    assert "done; 13 requests sent" in ran.out
    assert service.count == 0
    assert (home / "sandbox.jsonl").read_text().count("addtag") == 12


def test_rows_come_from_standard_input_too(
    command: Command, service: Sandbox, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Piped:
        buffer = io.BytesIO("\n".join(["email,tag,action", *_tag_lines(home, 3)]).encode())

    monkeypatch.setattr(sys, "stdin", Piped())
    ran = command("push", "tags", "--from", "-", sandbox=service)
    assert "3 rows of standard input" in ran.out
    assert ran.out.rstrip().endswith("… | marketing-sync push tags --from - --apply")


def test_a_file_in_another_encoding_is_sent_once_that_is_named(
    command: Command, service: Sandbox, folder: Path
) -> None:
    (folder / "people.csv").write_bytes("email,list,city\njo@example.com,Newsletter,Köln\n".encode("cp1252"))
    words = ("push", "contacts", "--from", str(folder / "people.csv"))
    refused = command(*words, sandbox=service)
    says(refused, 2, "people.csv is not in the encoding utf-8 (line 2): save it as .xlsx")
    ran = command(*words, "--encoding", "windows-1252", sandbox=service)
    assert "city: Köln" in ran.out
    assert ran.out.rstrip().endswith("--encoding windows-1252 --apply")
    for unknown in ("ansi", "hex"):
        refused = command(*words, "--encoding", unknown, sandbox=service)
        says(refused, 2, f"'{unknown}' is not a known encoding")
    assert service.count == 0


def test_a_sheet_is_not_chosen_beside_a_query(command: Command, service: Sandbox) -> None:
    says(command(*TAGS, "--sheet", "People", sandbox=service), 2, "--encoding and --sheet are for files")


def test_the_key_stands_nowhere_in_what_a_push_leaves_behind(
    command: Command, service: Sandbox, home: Path
) -> None:
    with serve(replace(STANDING, key=UNMISTAKABLE)) as url:
        move_account(home, url)
        settings = {"MARKETING_API_KEY": UNMISTAKABLE, "MARKETING_LOG": "DEBUG"}
        ran = command(*TAGS, "--apply", sandbox=Sandbox(url), **settings)
    assert ran.code == 0, ran.text
    assert UNMISTAKABLE not in ran.text
    assert [where for where, content in contents(home) if UNMISTAKABLE.encode() in content] == []


def test_nothing_personal_is_logged_at_info(
    command: Command, service: Sandbox, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level("INFO"):
        ran: Ran = command(*TAGS, "--apply", sandbox=service, MARKETING_LOG="INFO")
    assert "@" not in ran.err
    assert "@" not in caplog.text


def test_a_home_is_not_needed_to_ask_for_help(command: Command, home: Path) -> None:
    assert command("push", "contacts", "--help").code == 0
    assert Settings(home).home == home
    assert not home.exists()


def test_a_push_whose_rows_cannot_be_kept_is_not_begun(
    command: Command, service: Sandbox, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Later refusals are shown as they were in the input, so nothing of an unkept input is sent."""
    with monkeypatch.context() as patch:
        full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        patch.setattr("write_back.push_service.keep_rows", Mock(side_effect=full))
        ran = command(*TAGS, "--apply", sandbox=service)
    assert (ran.code, service.count) == (1, 0), ran.text
    assert "No space left" in ran.err
    assert command("push", "status", sandbox=service).out.strip() == "nothing has been pushed yet"
    assert command(*TAGS, "--apply", sandbox=service).code == 0
    assert (home / "pushes" / "1" / "rows.parquet").exists()
