"""What is recorded can be read back, whatever file it stands in."""

from __future__ import annotations

import datetime as dt
import hashlib
import json
import logging
import stat
import threading
from pathlib import Path
from typing import Any

import duckdb
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from marketing_api.exchange import Exchange, Outcome
from marketing_api.operation import Effect, Operation, Question
from marketing_api.operations import ALL, find
from tests.warehouse.exchanges import NOON, envelope, exchange, files, question, rows
from warehouse.archive import Archive
from warehouse.archive.row import COLUMNS
from warehouse.errors import ArchiveDamaged, ArchiveError, NotArchived


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "archive"


def record(archive: Archive, *exchanges: Exchange) -> list[int]:
    for one in exchanges:
        archive.record(one)
    return [one.request_id for one in exchanges]


def bodies(archive: Archive, request_ids: list[int]) -> list[Any]:
    return [answer.body for answer in archive.answers(request_ids)]


bodies_received = st.one_of(
    st.binary(max_size=200),
    st.builds(envelope, st.dictionaries(st.text(max_size=3), st.integers(), max_size=3), st.integers(0, 9)),
)
exchanges_made = st.builds(
    exchange,
    bodies_received,
    st.builds(question, st.integers(1, 3)),
    at=st.datetimes(dt.datetime(2026, 11, 20), dt.datetime(2026, 11, 22), timezones=st.just(dt.UTC)),
    outcome=st.sampled_from(Outcome),
    account=st.sampled_from(["main", "ägypten"]),
    error=st.none() | st.text(max_size=5),
)


def payload(body: bytes) -> Any:
    try:
        return json.loads(body)["response"]["data"]
    except (ValueError, KeyError, TypeError):
        return body


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(made=st.lists(exchanges_made, min_size=1, max_size=12), sealed_after=st.sets(st.integers(0, 11)))
def test_everything_recorded_is_read_back_in_the_order_asked_for(
    tmp_path_factory: pytest.TempPathFactory, made: list[Exchange], sealed_after: set[int]
) -> None:
    root = tmp_path_factory.mktemp("archive")
    wanted = [(one.request_id, one.account, one.question, one.requested_at, payload(one.body)) for one in reversed(made)]  # type: ignore[arg-type]

    def seen(archive: Archive) -> list[Any]:
        answers = archive.answers([one.request_id for one in reversed(made)])
        return [(a.request_id, a.account, a.question, a.requested_at, payload(a.body)) for a in answers]  # type: ignore[arg-type]

    with Archive(root) as archive:
        for number, one in enumerate(made):
            archive.record(one)
            if number in sealed_after:
                archive.seal()
        assert seen(archive) == wanted
    with Archive(root) as archive:
        assert seen(archive) == wanted
        for one in made:
            row = rows(archive)[one.request_id]
            assert (row["outcome"], row["error"], row["http_status"]) == (one.outcome, one.error, one.http_status)
            assert (row["bytes"], row["body_sha256"]) == (len(one.body), hashlib.sha256(one.body).hexdigest())  # type: ignore[arg-type]


def test_a_row_says_everything_about_its_request(root: Path) -> None:
    asked = find("reputation/direct").bind(filter="date", from_="2026-01-01", to="2026-01-31")
    with Archive(root) as archive:
        (request_id,) = record(archive, exchange(b"<html>", asked, outcome=Outcome.BROKEN, error="HTTP 502"))
    with Archive(root) as archive:
        row = rows(archive)[request_id]
    assert list(row) == [column.name for column in COLUMNS]
    assert row | {"body_sha256": "", "content_sha256": ""} == {
        "request_id": request_id,
        "account": "main",
        "operation": "reputation/direct",
        "question_key": asked.key,
        "params": '{"filter": "date", "from": "2026-01-01", "to": "2026-01-31"}',
        "requested_at": NOON,
        "waited_ms": 3,
        "took_ms": 120,
        "http_status": 200,
        "outcome": "broken",
        "error": "HTTP 502",
        "bytes": 6,
        "body_sha256": "",
        "content_sha256": "",
        "body_file": None,
        "body_ref": None,
    }
    assert all(column.doc for column in COLUMNS)


def test_the_files_can_be_queried_as_they_are(root: Path) -> None:
    with Archive(root) as archive:
        record(archive, exchange(envelope({"a": 1})), exchange(b"", outcome=Outcome.UNREACHABLE, at=NOON + dt.timedelta(days=1)))
    with duckdb.connect() as connection:
        found = connection.execute(
            "select date, outcome, decode(body)::json->'response'->'data'->>'a' from read_parquet(?) order by all",
            [str(root / "requests/*/*.parquet")],
        ).fetchall()
    assert found == [(dt.date(2026, 11, 20), "ok", "1"), (dt.date(2026, 11, 21), "unreachable", None)]


def test_files_are_for_the_owner_only(root: Path, tmp_path: Path) -> None:
    spool = tmp_path / "spool"
    spool.write_bytes(envelope({"large": 1}))
    with Archive(root) as archive:
        record(archive, exchange(b"x"), exchange(spool))
        archive.log_load({})
        while_open = {path: path.stat().st_mode for path in [root, *root.rglob("*")]}
    for path, mode in {**while_open, **{path: path.stat().st_mode for path in root.rglob("*")}}.items():
        assert stat.S_IMODE(mode) in ({0o700} if stat.S_ISDIR(mode) else {0o600}), path


def test_a_journal_is_gone_once_it_is_sealed(root: Path) -> None:
    with Archive(root) as archive:
        record(archive, exchange(b"x"))
        assert [Path(name).parts[0] for name in files(root)] == ["journals"]
        archive.seal()
        assert [Path(name).parts[:2] for name in files(root)] == [("requests", "date=2026-11-20")]
    assert len(files(root)) == 1


def test_a_full_journal_is_sealed_while_recording_goes_on(root: Path) -> None:
    with Archive(root, full_rows=10) as archive:
        made = [exchange(envelope({"n": n}), question(n)) for n in range(1, 26)]
        ids = record(archive, *made)
        assert bodies(archive, ids) == [one.body for one in made]
    assert len(files(root)) == 3


def test_many_threads_record_at_once(root: Path) -> None:
    with Archive(root, full_rows=50) as archive:
        made = [[exchange(envelope({"n": [n, t]}), question(n * 10 + t)) for n in range(40)] for t in range(4)]
        threads = [threading.Thread(target=record, args=(archive, *mine)) for mine in made]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        everything = [one for mine in made for one in mine]
        assert bodies(archive, [one.request_id for one in everything]) == [one.body for one in everything]
    with Archive(root) as archive:
        assert len(rows(archive)) == 160


def test_reading_takes_rows_of_many_groups_in_any_order(root: Path) -> None:
    with Archive(root) as archive:
        made = [exchange(envelope({"n": n}), question(n)) for n in range(1, 1203)]
        record(archive, *made)
        archive.seal()
        order = [*made[::-7], *made[:3], *made[:3]]
        assert bodies(archive, [one.request_id for one in order]) == [one.body for one in order]


def test_a_request_that_is_not_there_is_named(root: Path) -> None:
    with Archive(root) as archive:
        record(archive, exchange(b"x"))
        with pytest.raises(NotArchived, match="request 42 "):
            bodies(archive, [42])


def test_a_closed_archive_records_nothing(root: Path) -> None:
    archive = Archive(root)
    archive.close()
    archive.close()
    with pytest.raises(ArchiveError, match="closed"):
        archive.record(exchange(b"x"))
    assert files(root) == []


# -- equal answers


def test_an_equal_answer_is_stored_by_reference_whatever_the_rate_limit_says(root: Path) -> None:
    with Archive(root) as archive:
        (first,) = record(archive, exchange(envelope({"n": 1}, remaining=9)))
        archive.seal()
        second, third = record(archive, exchange(envelope({"n": 1}, remaining=8)), exchange(envelope({"n": 1}, remaining=7)))
    with Archive(root) as archive:
        stored = rows(archive)
        assert [stored[id_]["body_ref"] for id_ in (first, second, third)] == [None, first, first]
        assert stored[second]["body_sha256"] != stored[first]["body_sha256"]
        assert bodies(archive, [third, second, first]) == [envelope({"n": 1}, remaining=9)] * 3


def test_an_answer_refers_only_to_the_last_one_of_its_own_question_and_account(root: Path) -> None:
    one, two = envelope({"n": 1}), envelope({"n": 2})
    with Archive(root) as archive:
        ids = record(archive, exchange(one), exchange(two), exchange(one), exchange(one, account="other"), exchange(one, question(2)))
    with Archive(root) as archive:
        assert [rows(archive)[id_]["body_ref"] for id_ in ids] == [None] * 5


def test_an_earlier_answer_that_is_sealed_later_does_not_become_the_last(root: Path) -> None:
    with Archive(root) as slow, Archive(root) as quick:
        record(slow, exchange(envelope({"n": 1})))
        (last,) = record(quick, exchange(envelope({"n": 2})))
        quick.seal()
        slow.seal()
        (equal,) = record(quick, exchange(envelope({"n": 2})))
        quick.seal()
        assert rows(quick)[equal]["body_ref"] == last


def test_only_whole_answers_are_referred_to(root: Path) -> None:
    with Archive(root) as archive:
        ids = record(archive, *(exchange(b'{"cut', outcome=Outcome.BROKEN) for _ in range(2)), *(exchange(b"") for _ in range(2)))
    with Archive(root) as archive:
        assert [rows(archive)[id_]["body_ref"] for id_ in ids] == [None] * 4


def test_a_body_nested_too_deeply_to_be_read_is_kept_as_it_came(root: Path) -> None:
    body = b'{"response": {"data": ' + b"[" * 10_000 + b"]" * 10_000 + b"}}"
    with Archive(root) as archive:
        (id_,) = record(archive, exchange(body, outcome=Outcome.BROKEN))
    with Archive(root) as archive:
        assert rows(archive)[id_]["bytes"] == len(body)


def test_an_index_that_is_lost_or_damaged_is_built_again(root: Path, caplog: pytest.LogCaptureFixture) -> None:
    ids: list[int] = []
    for damage in (b"", b"no database at all" * 100, None):
        with Archive(root) as archive:
            ids += record(archive, exchange(envelope({"n": 1}, remaining=len(ids))))
        if damage is None:
            (root / "index.sqlite").unlink()
        else:
            (root / "index.sqlite").write_bytes(damage)
    with Archive(root) as archive:
        assert [rows(archive)[id_]["body_ref"] for id_ in ids] == [None, ids[0], ids[0]]
        assert len(bodies(archive, ids)) == 3
    assert "building it again" in caplog.text


def test_an_index_damaged_while_the_archive_is_open_is_built_again(root: Path) -> None:
    with Archive(root) as archive:
        first = record(archive, exchange(envelope({"n": 1})))
        archive.seal()
        (root / "index.sqlite").write_bytes(b"x" * 10_000)
        second = record(archive, exchange(envelope({"n": 1}, remaining=1)))
        archive.seal()
        assert rows(archive)[second[0]]["body_ref"] == first[0]


def test_no_answer_refers_to_a_body_that_went_with_a_missing_file(root: Path, caplog: pytest.LogCaptureFixture) -> None:
    with Archive(root) as archive:
        (first,) = record(archive, exchange(envelope({"n": 1})))
        archive.seal()
        (second,) = record(archive, exchange(envelope({"n": 1})))
    min((root / "requests").rglob("*.parquet")).unlink()
    with Archive(root) as archive:
        (third,) = record(archive, exchange(envelope({"n": 1})))
        archive.seal()
        assert rows(archive)[third]["body_ref"] is None
        assert archive.reusable("main", NOON).get(question().key) is not None
        with pytest.raises(ArchiveDamaged, match=str(first)):
            bodies(archive, [second])
    assert "missing" in caplog.text


# -- large bodies


@pytest.fixture
def spool(tmp_path: Path) -> Path:
    path = tmp_path / "spool.json"
    path.write_bytes(envelope({"items": list(range(50_000))}))
    return path


def test_a_spooled_body_goes_from_file_to_file(root: Path, spool: Path) -> None:
    with Archive(root) as archive:
        large, small = record(archive, exchange(spool), exchange(envelope({"n": 1})))
        for _ in range(2):
            answers = archive.answers([large, small])
            body = next(answers).body
            assert isinstance(body, Path)
            assert body.read_bytes() == spool.read_bytes()
            next(answers)
            assert not body.exists()
            archive.seal()
        row = rows(archive)[large]
        assert row["body_file"] == f"bodies/date=2026-11-20/{large}.json.zst"
        assert (row["bytes"], row["body_sha256"]) == (spool.stat().st_size, hashlib.sha256(spool.read_bytes()).hexdigest())
        assert row["content_sha256"] != row["body_sha256"]
        assert spool.exists()


def test_a_repeated_large_body_is_kept_once(root: Path, spool: Path) -> None:
    with Archive(root) as archive:
        (first,) = record(archive, exchange(spool))
        archive.seal()
        (second,) = record(archive, exchange(spool))
        with Archive(root) as other:
            answers = other.answers([second])  # another process has found it in the journal, and then it is sealed
            other._reader._find([second])
            archive.seal()
            assert next(answers).body.read_bytes() == spool.read_bytes()  # type: ignore[union-attr]
            answers.close()  # type: ignore[attr-defined]
        assert rows(archive)[second]["body_ref"] == first
        assert [path.name for path in (root / "bodies").rglob("*.zst")] == [f"{first}.json.zst"]
        reused = archive.reusable("main", NOON).get(question().key)
        assert reused is not None
        assert (reused.request_id, Path(str(reused.body)).read_bytes()) == (second, spool.read_bytes())
    assert not Path(str(reused.body)).exists()


@pytest.mark.parametrize("damage", ["cut", "changed", "gone"])
def test_a_damaged_large_body_is_noticed(root: Path, spool: Path, damage: str) -> None:
    with Archive(root) as archive:
        ids = record(archive, exchange(spool))
        (packed,) = (root / "bodies").rglob("*.zst")
        content = packed.read_bytes()
        if damage == "gone":
            packed.unlink()
        else:
            packed.write_bytes(content[:-100] if damage == "cut" else content[:999] + b"zzzzzzzz" + content[1007:])
        with pytest.raises(ArchiveDamaged, match=str(ids[0])):
            bodies(archive, ids)
        assert archive.reusable("main", NOON).get(question().key) is None


# -- using an answer again


def test_the_latest_whole_answer_can_be_used_again(root: Path) -> None:
    def at(minutes: int, n: int, **more: Any) -> Exchange:
        return exchange(envelope({"n": n}), at=NOON + dt.timedelta(minutes=minutes), **more)

    with Archive(root) as archive:
        record(archive, at(0, 0), at(3, 3), at(2, 2), at(4, 4, outcome=Outcome.BROKEN), at(5, 5, account="other"))
        for _ in range(2):
            reusable = archive.reusable("main", NOON + dt.timedelta(minutes=1))
            assert len(reusable) == 1
            answer = reusable.get(question().key)
            assert answer is not None
            assert answer.body == envelope({"n": 3})
            assert archive.reusable("main", NOON + dt.timedelta(minutes=4)).get(question().key) is None
            assert reusable.get(question(2).key) is None
            archive.seal()


def test_answers_recorded_later_can_be_used_too(root: Path) -> None:
    with Archive(root) as archive:
        reusable = archive.reusable("main", NOON)
        record(archive, exchange(b"{}"), exchange(b"{}", question(2), outcome=Outcome.REFUSED))
        assert question().key in reusable
        assert question(2).key not in reusable
        assert reusable.get(question().key).body == b"{}"  # type: ignore[union-attr]


def test_the_answer_to_a_write_is_never_used_again(root: Path) -> None:
    write = next(operation for operation in ALL.values() if operation.effect is Effect.DELETE)
    asked = Question(write, {"id": "1"})
    with Archive(root) as archive:
        record(archive, exchange(envelope({"item": "done"}), asked))
        assert archive.reusable("main", NOON).get(asked.key) is None


def test_an_operation_this_version_does_not_know_keeps_nobody_from_reading(root: Path) -> None:
    unknown = Question(Operation("future/thing", "GET", Effect.READ, "Not yet."), {"x": "1"})
    with Archive(root) as archive:
        ids = record(archive, exchange(b"{}", unknown), exchange(b"[]"))
        for _ in range(2):
            future, known = archive.answers(ids)
            assert (future.question.operation.name, future.question.params, future.body) == ("future/thing", {"x": "1"}, b"{}")
            assert known.body == b"[]"
            archive.seal()


# -- secrets


def test_secret_parameters_leave_no_trace_not_even_a_hash(root: Path) -> None:
    register = find("register/createaccount")
    secret = next(parameter.name for parameter in register.parameters if parameter.secret)
    asked = Question(register, {secret: "hunter2hunter2"})
    with Archive(root) as archive:
        (request_id,) = record(archive, exchange(b"", asked))
        held = b"".join(path.read_bytes() for path in root.rglob("*") if path.is_file())
    held += b"".join(path.read_bytes() for path in root.rglob("*") if path.is_file())
    with Archive(root) as archive:
        row = rows(archive)[request_id]
        held += repr(list(archive.answers([request_id]))).encode() + repr(row).encode()
    assert json.loads(row["params"]) == {secret: "***"}
    assert b"hunter2" not in held
    assert row["question_key"] != asked.key


# -- the files one by one, and the log of loads


def test_exchanges_come_file_by_file_without_those_already_known(root: Path) -> None:
    with Archive(root) as archive:
        (first,) = record(archive, exchange(b"1"))
        archive.seal()
        ((name, table),) = archive.exchanges()
        assert table["request_id"].to_pylist() == [first]
        assert "body" not in table.column_names
        (second,) = record(archive, exchange(b"2"))
        assert list(archive.exchanges({name})) == []
        archive.seal()
        ((_, table),) = archive.exchanges({name})
        assert table["request_id"].to_pylist() == [second]


def test_a_damaged_file_is_left_out_and_said(root: Path, caplog: pytest.LogCaptureFixture) -> None:
    with Archive(root) as archive:
        ids = record(archive, exchange(b"1"))
    (path,) = (root / "requests").rglob("*.parquet")
    path.write_bytes(b"PAR1 and nothing else")
    with caplog.at_level(logging.WARNING), Archive(root) as archive:
        assert list(archive.exchanges()) == []
        assert archive.reusable("main", NOON).get(question().key) is None
        with pytest.raises(ArchiveError):
            bodies(archive, ids)
    assert path.name in caplog.text


def test_loads_are_logged_in_their_order(root: Path) -> None:
    with Archive(root) as archive:
        assert list(archive.loads()) == []
        archive.log_load({"table": "contacts", "request_ids": [1, 2], "note": "line\nbreak ü"})
        archive.log_load({"n": 2})
    with Archive(root) as archive:
        assert list(archive.loads()) == [{"table": "contacts", "request_ids": [1, 2], "note": "line\nbreak ü"}, {"n": 2}]


def test_a_torn_last_line_counts_as_not_logged(root: Path) -> None:
    with Archive(root) as archive:
        archive.log_load({"n": 1})
        whole = (root / "loads.jsonl").read_bytes()
        archive.log_load({"n": 2, "long": "x" * 100_000})
        line = (root / "loads.jsonl").read_bytes()[len(whole) :]
        for length in (1, 10, 70_000, len(line) - 1):
            (root / "loads.jsonl").write_bytes(whole + line[:length])
            assert list(archive.loads()) == [{"n": 1}]
            archive.log_load({"n": 3})
            assert list(archive.loads()) == [{"n": 1}, {"n": 3}]


def test_a_damaged_line_amid_the_log_is_not_passed_over(root: Path) -> None:
    with Archive(root) as archive:
        (root / "loads.jsonl").write_bytes(b'{"n": 1}\n{"n"\n{"n": 3}\n')
        with pytest.raises(ArchiveDamaged, match="line 2"):
            list(archive.loads())
