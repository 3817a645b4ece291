"""What a push could not send: rejected rows to correct and push again, refusals, the alert address."""

import csv
import io
import shlex
from pathlib import Path

import msgspec
import pytest
import requests

from home import output
from home.alerts import try_to_post
from home.settings import Settings
from tests.fixtures import Alerts, Command
from tests.marketing_sync.test_cli_errors import says
from tests.marketing_sync.test_push_command import sent, write
from tests.pipelines.sandboxes import KEY, Sandbox
from tests.pipelines.tables import query
from tests.waiting import HANGS_S
from write_back.refusals import REFUSALS, find_refusal, is_permanent

LIST, OTHER = "Corporate catering", "Newsletter"
REJECTED = ["rejected row", "rejected from", "rejected because", "rejected in push"]
OPTIONS = ("--map", "email=Customer", "--ignore", "NOTES", "--reject-limit", "50%", "--apply")


def records(text: str) -> list[list[str]]:
    return list(csv.reader(io.StringIO(text.removeprefix("\ufeff"))))


def list_ids(home: Path) -> dict[str, int]:
    return dict(query(home, "select name, list_id from source.lists"))


def written_to(service: Sandbox, operation: str, **params: object) -> None:
    """Somebody else changes something."""
    reply = requests.get(
        f"{service.url}/emailmarketing/{operation}.json", params={"key": KEY, **params}, timeout=HANGS_S
    )
    assert reply.json()["response"]["header"]["status"] == "ok"


@pytest.fixture
def refused(command: Command, service: Sandbox, home: Path, folder: Path) -> str:
    """Push 1: two people for a list that is deleted meanwhile, and a row without an address; its output."""
    list_id = list_ids(home)[LIST]
    written_to(service, "deletelist", id=list_id)
    rows = [f"{who},{list_id},Rome,x" for who in ("ann@example.com", "bob@example.com", "no address")]
    name = write(folder, "people.csv", "Customer,list_id,city,NOTES", *rows)
    ran = command("push", "contacts", "--from", name, *OPTIONS, sandbox=service)
    assert ran.code == 1, ran.text
    return ran.out


# -- rejected rows


def test_corrected_rows_are_pushed_with_the_command_that_it_prints_and_then_are_rejected_no_more(
    refused: str, command: Command, service: Sandbox, home: Path, folder: Path
) -> None:
    ran = command("push", "status", "--rejected", sandbox=service)
    assert ran.code == 0
    header, *rows = records(ran.out)
    assert header == [*REJECTED, "Customer", "list_id", "city", "NOTES"]
    places = [f"people.csv, line {number}" for number in (2, 3, 4)]
    people = ["ann@example.com", "bob@example.com", "no address"]
    assert [(row[1], *row[3:5]) for row in rows] == list(zip(places, "111", people, strict=True))
    ids = list_ids(home)
    text = ran.out.replace(str(ids[LIST]), str(ids[OTHER])).replace("ann@", "anne@")
    (folder / "FILE").with_suffix(".csv").write_text(text, encoding="utf-8")
    typed = shlex.split(ran.err.splitlines()[1].replace("FILE", "FILE.csv"))[1:]
    again = command(*typed, "--reject-limit", "50%", "--verify", "none", "--apply", sandbox=service)
    assert "1 row not done" in again.out
    states = "select push_id, state, count(*) from sync.writebacks group by all order by all"
    assert query(home, states) == [(1, "skipped", 3), (2, "applied", 2), (2, "rejected", 1)]
    messages = query(home, "select distinct message from sync.writebacks where push_id = 1")
    assert messages == [("corrected in push 2",)]
    left = command("push", "status", "--rejected", sandbox=service)
    header, *rows = records(left.out)
    assert [name for name in header if name.startswith("rejected")] == REJECTED
    assert [(row[3], row[4]) for row in rows] == [("2", "no address")]
    (folder / "third.csv").write_text(left.out.replace("no address", "cy@example.com"), encoding="utf-8")
    typed = shlex.split(left.err.splitlines()[1].replace("FILE", "third.csv"))[1:]
    assert command(*typed, "--verify", "none", "--apply", sandbox=service).code == 0
    assert "no rejected rows are left" in command("push", "status", "--rejected", sandbox=service).err


def test_what_is_refused_once_more_stays_with_the_push_whose_request_it_is(
    refused: str, command: Command, service: Sandbox, folder: Path
) -> None:
    text = command("push", "status", "1", "--rejected", sandbox=service).out
    (folder / "same.csv").write_text(text, encoding="utf-8")
    command("push", "contacts", "--from", "same.csv", *OPTIONS, sandbox=service)
    shown = (command("push", "status", push, "--rejected", "--json", sandbox=service).out for push in "12")
    rows = [row for text in shown for row in msgspec.json.decode(text, type=output.RejectedRows).rows]
    found = {(row.push, row.cells["Customer"]) for row in rows}
    assert found >= {(1, "ann@example.com"), (1, "bob@example.com"), (2, "no address")}
    assert (1, "no address") not in found
    assert "2 requests to be tried again" in command("push", "retry", "1", "--permanent", sandbox=service).out


def test_a_refused_activity_is_not_forgotten_by_being_corrected(
    command: Command, service: Sandbox, home: Path, folder: Path
) -> None:
    """It may have arrived all the same: pushed once more it would stand in the timeline twice."""
    active = "from source.contacts where status = 'active'"
    ((gone, list_id), (there, _)) = query(home, f"select contact_id, list_id {active} order by 1 limit 2")
    written_to(service, "deletecontact", id=gone, listid=list_id)
    name = write(folder, "calls.csv", "contact_id,description,datetime", f"{gone},called,2026-11-01 10:00")
    assert command("push", "activities", "--from", name, "--apply", sandbox=service).code == 1
    text = command("push", "status", "--rejected", sandbox=service).out.replace(f",{gone},", f",{there},")
    (folder / "corrected.csv").write_text(text, encoding="utf-8")
    assert command("push", "activities", "--from", "corrected.csv", "--apply", sandbox=service).code == 0
    before = service.count
    again = command("push", "activities", "--from", name, "--apply", sandbox=service)
    assert "rejected this before" in again.out
    assert service.count == before


def test_a_file_that_is_there_is_not_written_over(
    refused: str, command: Command, service: Sandbox, folder: Path
) -> None:
    (folder / "out.csv").write_text("mine")
    ran = command("push", "status", "--rejected", "--out", "out.csv", sandbox=service)
    assert (ran.code, ran.err) == (0, "")
    assert "push contacts --from out-2.csv --map email=Customer --ignore NOTES" in ran.out
    assert (folder / "out.csv").read_text() == "mine"
    assert (folder / "out-2.csv").stat().st_mode & 0o077 == 0
    (folder / "out").mkdir()
    command("push", "status", "--rejected", "--out", "out", sandbox=service)
    assert (folder / "out" / "contacts.csv").exists()
    text = command("push", "status", "1", "--rejected", "--json", sandbox=service).out
    found = msgspec.json.decode(text, type=output.RejectedRows, strict=True).rows
    assert {(row.push, row.kind) for row in found} == {(1, "contacts")}
    reasons = sorted((*row.why.rows, row.why.by_service, row.why.is_permanent) for row in found)
    assert reasons == [(2, True, True), (3, True, True), (4, False, None)]


def test_on_a_terminal_it_writes_into_the_home(
    refused: str, command: Command, service: Sandbox, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    for name in ("contacts.csv", "contacts-2.csv"):
        ran = command("push", "status", "--rejected", sandbox=service)
        assert f"{home}/pushes/rejected/{name}" in ran.out


def test_of_rows_that_are_lost_it_gives_numbers_and_reasons(
    refused: str, command: Command, service: Sandbox, home: Path
) -> None:
    (home / "pushes" / "1" / "rows.parquet").unlink()
    ran = command("push", "status", "--rejected", sandbox=service)
    assert [(row[0], row[3]) for row in records(ran.out)[1:]] == [("2", "1"), ("3", "1"), ("4", "1")]
    assert "only numbers and reasons" in ran.err


def test_without_rejected_rows_or_with_a_wrong_call_it_says_so(
    command: Command, service: Sandbox, folder: Path
) -> None:
    nothing = command("push", "status", "--rejected", sandbox=service)
    assert (nothing.code, nothing.out) == (0, "")
    document = command("push", "status", "--rejected", "--json", sandbox=service).out
    assert msgspec.json.decode(document) == {"rows": []}
    says(command("push", "status", "7", "--rejected", sandbox=service), 2, "has no push 7")
    (folder / "file").write_text("")
    write(folder, "tags.csv", "email,tag", "nobody,vip")
    command("push", "tags", "--from", "tags.csv", "--reject-limit", "1", "--apply", sandbox=service)
    ran = command("push", "status", "--rejected", "--out", "file/out.csv", sandbox=service)
    says(ran, 2, "cannot be written")


# -- refusals


#: Refusal and whether it may pass → sentences.
WORDS = {
    ("there is no such contact", True): (
        "addtag: the service refused with errorCode 1003 (The contact doesn't exist)",
        "addtag: the service answered ok, but said: The contact with id … doesn’t exist",
        "no contact has this address",
    ),
    ("the contact is not on the list", False): (
        "movecontact: … (The contact in the source list doesn't exist)",
    ),
    ("there is no such list", False): ("synccontact: … (The list doesn't exist)",),
    ("the list has no such field", False): ("synccontact: … (The custom field doesn't exist)",),
    ("a value is not valid", False): (
        "addactivity: … (datetime is not valid)",
        "synccontact: … (listid must be a number)",
    ),
    ("the domain of the sender is not verified", True): (
        "addcampaign: … (The sender domain is not verified)",
        "addcampaign: … (Please verify your sending domain)",
        "addcampaign: … (Your domain hasn't been verified)",
        "addcampaign: … (Unverified sender domain)",
    ),
    ("the contact exists already", False): (
        "addcontact: the service answered ok, but said: The contact already exists",
        "addcontact: … (Contact exists already)",
        "addcontact: … (This email is already on the list)",
        "addcontact: … (This email is already subscribed)",
    ),
    ("an unexpected response", True): ("addtag: the response is HTTP 302; is the address right?",),
    ("the operation is not available to the account", True): (
        "addtag: … errorCode 1002 (…): not available to this account",
    ),
}


@pytest.mark.parametrize(
    ("name", "may_pass", "words"), [(*key, words) for key, several in WORDS.items() for words in several]
)
def test_known_words_are_permanent_or_may_pass(name: str, may_pass: bool, words: str) -> None:
    refusal = find_refusal(words if words.startswith("no ") else f"emailmarketing/{words}")
    assert refusal is not None
    assert (refusal.name, not refusal.is_permanent) == (name, may_pass)


def test_unknown_words_may_pass() -> None:
    assert find_refusal("the moon is full") is None
    assert not is_permanent("the moon is full")
    assert not is_permanent(None)
    assert len({each.name for each in REFUSALS}) == len(REFUSALS), "an alert tells them apart by name"


def test_advice_about_a_single_call_mentions_no_push() -> None:
    assert [each.name for each in REFUSALS if "push" in each.remedy_of_call] == []


def test_retry_leaves_what_would_be_refused_again_and_says_what_to_do(
    refused: str, command: Command, service: Sandbox
) -> None:
    assert "(The list doesn't exist)\n    permanent. To do: run `marketing-sync sync --only lists`" in refused
    assert "push retry 1" not in refused, "it would do nothing"
    before = service.count
    left = command("push", "retry", sandbox=service)
    assert left.code == 1, "two rows are not done"
    assert "2 requests not sent, because they would be refused again; `--permanent`" in left.out
    assert "To do: run `marketing-sync sync --only lists`" in left.out
    assert service.count == before
    document = msgspec.json.decode(command("push", "retry", "--json", sandbox=service).out, type=output.Push)
    assert [(each.rows, each.is_permanent) for each in document.left] == [([2, 3], True)]
    assert "2 requests to be tried again" in command("push", "retry", "--permanent", sandbox=service).out
    assert sorted(sent(service, before)) == ["app/me"] + ["getcontactbyemail"] * 2 + ["synccontact"] * 2
    status = command("push", "status", "1", sandbox=service)
    assert "permanent. To do: run" in status.out


def test_reasons_are_those_of_all_rows_not_of_the_first_twenty(
    command: Command, service: Sandbox, folder: Path
) -> None:
    name = write(folder, "tags.csv", "email,tag", *(f"nobody{number},vip" for number in range(30)))
    ran = command("push", "tags", "--from", name, "--reject-limit", "1", "--apply", sandbox=service)
    assert "rows 2, 3, 4, 5, 6 and 25 more: this is not an e-mail address" in ran.out.partition("push 1:")[2]


# -- the alert address


def test_what_needs_a_person_is_posted_once_without_anything_personal(
    command: Command, service: Sandbox, home: Path, folder: Path, alerts: type[Alerts]
) -> None:
    active = "select email from source.contacts where status = 'active' order by 1 limit 2"
    people = [email for (email,) in query(home, active)]
    rows = [f"{people[0]},vip,add", f"{people[1]},vip,maybe", "who@example.com,vip,remove"]
    name = write(folder, "anna@example.com.csv", "email,tag,action", *rows)

    def push(*words: str) -> int:
        words = ("push", "tags", "--from", *words)
        return command(*words, sandbox=service, MARKETING_ALERT_URL=alerts.url).code

    assert push(name, "--reject-limit", "50%", "--apply") == 1
    (body,) = alerts.bodies
    assert (body["push"], body["job"], body["account"]) == (1, "push_tags", "main")
    assert body["needs_person"] == {"rejected": 2}
    text = body["text"]
    assert "1 row: … is not an action: write add or remove" in text
    assert "1 row: there is no such contact; to do: run `marketing-sync sync`" in text
    assert "push status 1 --rejected" in text
    assert [word for word in ("@", "maybe", "vip", KEY) if word in str(body)] == []
    push(name, "--ignore", "tag")
    fine = write(folder, "fine.csv", "email,tag", f"{people[0]},other")
    assert push(fine, "--apply") == 0
    assert len(alerts.bodies) == 1, "plans and what is done need nobody"


def test_words_of_the_service_that_are_not_known_stay_here(
    refused: str, command: Command, service: Sandbox, alerts: type[Alerts]
) -> None:
    from write_back.item import Reason
    from write_back.order import Ran
    from write_back.outbox.outbox import open_outbox
    from write_back.push_report import alert_body, collect_result, explain_reason

    home = Path(refused.partition("rejected rows: ")[2].partition("/pushes/")[0])
    with open_outbox(home) as outbox:
        result = collect_result(home, outbox, 1)
    odd = Reason((2,), "emailmarketing/addtag: … (Ann Miller of Rome has left)", by_service=True)
    result.reasons = [explain_reason(odd)]
    text = str(alert_body(result, Ran("push_tags", "main"))["text"])
    assert "1 row: other words of the service" in text
    assert "Miller" not in text


@pytest.mark.parametrize("url", ["http://127.0.0.1:1/secret-hook", "http://[secret-hook"])
def test_an_alert_that_cannot_be_posted_is_a_warning(
    command: Command, service: Sandbox, folder: Path, url: str, caplog: pytest.LogCaptureFixture
) -> None:
    name = write(folder, "tags.csv", "email,tag", "nobody,vip")
    words = ("push", "tags", "--from", name, "--reject-limit", "1", "--apply")
    ran = command(*words, sandbox=service, MARKETING_ALERT_URL=url)
    assert ran.code == 1
    assert "1 row not done" in ran.out
    assert "the alert could not be posted to MARKETING_ALERT_URL" in ran.err + caplog.text
    assert "secret-hook" not in ran.text + caplog.text


def test_an_alert_that_is_answered_with_an_error_is_a_warning(
    home: Path, alerts: type[Alerts], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    try_to_post(Settings(home, alert_url=alerts.url), {"text": "x" * 5000})
    assert [len(body["text"]) for body in alerts.bodies] == [2000]
    monkeypatch.setattr(Alerts, "status", 500)
    assert not caplog.text
    try_to_post(Settings(home, alert_url=alerts.url), {"text": "x"})
    assert "(HTTP 500)" in caplog.text


def test_activations_tell_it_too(
    command: Command, service: Sandbox, home: Path, folder: Path, alerts: type[Alerts]
) -> None:
    written_to(service, "deletelist", id=list_ids(home)[LIST])
    query_text = "select email from source.contacts where status = 'active' order by 1 limit 2"
    (folder / "activations.toml").write_text(
        f'[activations.some]\nquery = "{query_text}"\nlist = "{LIST}"\n', encoding="utf-8"
    )
    ran = command("push", "activations", "--apply", sandbox=service, MARKETING_ALERT_URL=alerts.url)
    assert ran.code == 1
    (body,) = alerts.bodies
    assert body["job"] == "push_activations"
    assert "there is no such list; to do:" in body["text"]
