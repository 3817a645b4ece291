"""All outputs of one push agree: its end, `push status`, `--json`, Dagster's page and the rejected file."""

import functools
import re
from pathlib import Path

import msgspec
import pytest

from home import output
from pipelines.push_jobs import result_metadata
from tests.fixtures import Command
from tests.marketing_sync.test_push_command import write
from tests.marketing_sync.test_push_rejected import LIST, OTHER, list_ids, records, written_to
from tests.pipelines.sandboxes import Sandbox
from tests.pipelines.tables import query
from write_back import push_service
from write_back.item import RetryPolicy
from write_back.kinds import verify_pushes

#: What the texts call a state, and what JSON, Dagster and sync.writebacks call it.
STATES = {
    "sent and verified": "verified",
    "sent": "applied",
    "sent, with a mismatch on read-back": "applied",
    "skipped": "skipped",
    "rejected": "rejected",
}


@pytest.fixture(autouse=True)
def _nothing_is_queued(monkeypatch: pytest.MonkeyPatch) -> None:
    policy = RetryPolicy(verify_wait_s=0.0)
    monkeypatch.setattr(push_service, "verify_pushes", functools.partial(verify_pushes, policy=policy))


def contacts(service: Sandbox, home: Path, folder: Path) -> str:
    """Rows of every outcome: 2 and 3 arrive, 4 arrives in one of its lists, 5 is unchanged, 6 to 9 are
    rejected: by the service, as no address, and as contradictions. Row 6 has a line break."""
    ids = list_ids(home)
    written_to(service, "deletelist", id=ids[LIST])
    service.control("switches", **{"sync-lists": "first"})
    kept = "select email, list_id from source.contacts where status = 'active' and list_id = ? limit 1"
    ((email, list_id),) = query(home, kept.replace("?", str(ids[OTHER])))
    both = f'"{ids[OTHER]};{ids["Loyalty club"]}"'
    cities = [f"ann@example.com,{ids[OTHER]},Rome", f"bo@example.com,{ids[OTHER]},Rome"]
    cities += [f"cy@example.com,{both},", f"{email},{list_id},"]
    cities += [f'di@example.com,{ids[LIST]},"Rome\nItaly"', f"no address,{ids[OTHER]},Rome"]
    cities += [f"ed@example.com,{ids[OTHER]},Oslo", f"Ed@example.com,{ids[OTHER]},Bern"]
    return write(folder, "people.csv", "email,list,City", *cities)


def tags(service: Sandbox, home: Path, folder: Path) -> str:
    ((email,),) = query(home, "select min(email) from source.contacts where status = 'active'")
    return write(folder, "tags.csv", "email,tag", f"{email},vip", f"{email},gold", "no address,vip")


@pytest.mark.parametrize(
    ("kind", "make_file", "rows", "places"),
    [
        (
            "contacts",
            contacts,
            {"sent and verified": 2, "sent, with a mismatch on read-back": 1, "skipped": 1, "rejected": 4},
            {6: "line 6", 7: "line 8", 8: "line 9", 9: "line 10"},
        ),
        ("tags", tags, {"sent": 2, "rejected": 1}, {4: "line 4"}),
    ],
)
def test_all_outputs_of_a_push_agree_to_the_row(
    command: Command,
    service: Sandbox,
    home: Path,
    folder: Path,
    kind: str,
    make_file: functools.partial[str],
    rows: dict[str, int],
    places: dict[int, str],
) -> None:
    name = make_file(service, home, folder)
    options = ("--verify", "all", "--reject-limit", "1", "--apply")
    ended = command("push", kind, "--from", name, *options, sandbox=service)
    assert ended.code == 1, ended.text
    status = command("push", "status", "1", sandbox=service).out
    end = re.sub(r"; \d+ requests sent", "", ended.out[ended.out.index("push 1: ") :])
    assert end.strip() == status.strip()

    counts = dict(re.findall(r"^  (\S.*?)  +(\d+)(?:   .*)?$", status, re.MULTILINE))
    assert {words: int(count) for words, count in counts.items()} == rows
    not_done = sum(
        count for words, count in rows.items() if words not in ("sent and verified", "sent", "skipped")
    )
    assert f"{not_done} row{'s' * (not_done > 1)} not done" in status
    if kind == "tags":
        assert "can't be verified: the API doesn't return tags" in status

    text = command("push", "status", "1", "--json", sandbox=service).out
    (result,) = msgspec.json.decode(text, type=output.Push).results
    by_state: dict[str, int] = {}
    for words, count in rows.items():
        by_state[STATES[words]] = by_state.get(STATES[words], 0) + count
    assert (result.rows, result.row_count) == (by_state, sum(rows.values()))
    assert result.shortfall == not_done
    assert query(
        home, "select state, sum(len(row_numbers)) from sync.writebacks group by 1 order by 1"
    ) == sorted(by_state.items())

    listed = msgspec.json.decode(command("push", "status", "--json", sandbox=service).out, type=output.Pushes)
    (line,) = listed.pushes
    assert (
        line.rows
        == line.sent + line.skipped + line.rejected + line.open + line.mismatches
        == result.row_count
    )
    header, shown = command("push", "status", sandbox=service).out.splitlines()[:2]
    names = ["rows", "sent", "skipped", "rejected", "open", "mismatches"]
    figures = {name: str(getattr(line, name)) for name in names if getattr(line, name)}
    assert dict(zip(header.split()[5:], shown.split()[5:], strict=True)) == figures

    metadata = result_metadata(result)
    assert (metadata["rows"], metadata["rows not done"]) == (result.row_count, not_done)
    assert {state: metadata[f"rows {state}"] for state in by_state} == by_state
    page = metadata["result"].value
    assert all(" ".join([words, str(count)]) in " ".join(page.split()) for words, count in rows.items())

    header, *rejected = records(command("push", "status", "--rejected", sandbox=service).out)
    assert header[:3] == ["rejected row", "rejected from", "rejected because"]
    assert {int(row[0]): row[1] for row in rejected} == {
        row: f"{name}, {place}" for row, place in places.items()
    }
    assert {int(row[0]): row[2] for row in rejected} == {
        row: reason.reason for reason in result.reasons for row in reason.rows
    }
    assert (home / "pushes" / "1" / "rejected.csv").read_text("utf-8-sig").splitlines()[0] == ",".join(header)
    assert all(reason.reason in status for reason in result.reasons)
