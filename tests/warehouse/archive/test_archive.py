"""What is recorded can be read back, whatever file it stands in."""

import datetime as dt
import hashlib
import json
import logging
import stat
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from marketing_api.exchange import Exchange, Outcome
from marketing_api.operation import Call
from marketing_api.operations import find
from tests.depth import examples
from tests.warehouse.exchanges import ALWAYS, NOON, bodies, envelope, exchange, files, question, record, rows
from warehouse.archive.archive import Archive
from warehouse.archive.file_store import Files
from warehouse.archive.sealed import HEAD_SCHEMA, SCHEMA, write_sealed
from warehouse.disk import Workspace
from warehouse.errors import ArchiveDamaged, ArchiveError, NotArchived

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


@settings(max_examples=examples(15))
@given(made=st.lists(exchanges_made, min_size=1, max_size=12), sealed_after=st.sets(st.integers(0, 11)))
def test_everything_recorded_is_read_back_in_the_order_asked_for(
    tmp_path_factory: pytest.TempPathFactory, made: list[Exchange], sealed_after: set[int]
) -> None:
    root = tmp_path_factory.mktemp("archive")
    wanted = [
        (one.request_id, one.account, one.call, one.requested_at, payload(one.body)) for one in reversed(made)
    ]  # type: ignore[arg-type]

    def seen(archive: Archive) -> list[Any]:
        answers = archive.responses([one.request_id for one in reversed(made)])
        return [(a.request_id, a.account, a.call, a.requested_at, payload(a.body)) for a in answers]  # type: ignore[arg-type]

    with Archive(root) as archive:
        for number, one in enumerate(made):
            archive.record_exchange(one)
            if number in sealed_after:
                archive.seal_requests()
        assert seen(archive) == wanted
    with Archive(root) as archive:
        assert seen(archive) == wanted
        for one in made:
            row = rows(archive)[one.request_id]
            assert (row["outcome"], row["error"], row["http_status"]) == (
                one.outcome,
                one.error,
                one.http_status,
            )
            assert (row["bytes"], row["body_sha256"]) == (len(one.body), hashlib.sha256(one.body).hexdigest())  # type: ignore[arg-type]


def test_a_row_says_everything_about_its_request(root: Path) -> None:
    asked = find("reputation/direct").bind(filter="date", from_="2026-01-01", to="2026-01-31")
    with Archive(root) as archive:
        (request_id,) = record(archive, exchange(b"<html>", asked, outcome=Outcome.BROKEN, error="HTTP 502"))
    with Archive(root) as archive:
        row = rows(archive)[request_id]
    assert list(row) == HEAD_SCHEMA.names
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
    assert all(field.metadata[b"comment"] for field in HEAD_SCHEMA)


def test_the_files_can_be_queried_as_they_are(root: Path) -> None:
    with Archive(root) as archive:
        record(
            archive,
            exchange(envelope({"a": 1})),
            exchange(b"", outcome=Outcome.UNREACHABLE, at=NOON + dt.timedelta(days=1)),
        )
    with duckdb.connect() as connection:
        found = connection.execute(
            "select date, outcome, decode(body)::json->'response'->'data'->>'a' from read_parquet(?) "
            "order by all",
            [str(root / "requests/*/*.parquet")],
        ).fetchall()
    assert found == [(dt.date(2026, 11, 20), "ok", "1"), (dt.date(2026, 11, 21), "unreachable", None)]


def test_files_are_for_the_owner_only(root: Path, tmp_path: Path) -> None:
    spool = tmp_path / "spool"
    spool.write_bytes(envelope({"large": 1}))
    with Archive(root) as archive:
        record(archive, exchange(b"x"), exchange(spool))
        archive.ledger.log_loads({})
        while_open = {path: path.stat().st_mode for path in [root, *root.rglob("*")]}
    for path, mode in {**while_open, **{path: path.stat().st_mode for path in root.rglob("*")}}.items():
        assert stat.S_IMODE(mode) in ({0o700} if stat.S_ISDIR(mode) else {0o600}), path


def test_a_request_leaves_the_ledger_once_it_is_sealed(root: Path) -> None:
    with Archive(root) as archive:
        ids = record(archive, exchange(b"x"))
        assert list(archive.ledger.find_recorded()) == ids
        assert files(root) == []
        archive.seal_requests()
        assert archive.ledger.find_recorded() == {}
        assert [Path(name).parts[:2] for name in files(root)] == [("requests", "date=2026-11-20")]
    assert len(files(root)) == 1


def test_a_full_ledger_is_sealed_while_recording_goes_on(root: Path) -> None:
    with Archive(root, full_rows=10) as archive:
        made = [exchange(envelope({"n": n}), question(n)) for n in range(1, 26)]
        ids = record(archive, *made)
        assert bodies(archive, ids) == [one.body for one in made]
    assert len(files(root)) == 3


def test_many_threads_record_at_once(root: Path) -> None:
    with Archive(root, full_rows=50) as archive:
        made = [
            [exchange(envelope({"n": [n, t]}), question(n * 10 + t)) for n in range(40)] for t in range(4)
        ]
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
        archive.seal_requests()
        order = [*made[::-7], *made[:3], *made[:3]]
        assert bodies(archive, [one.request_id for one in order]) == [one.body for one in order]


def test_a_file_that_is_merged_into_another_while_it_is_read_is_read_to_its_end(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("warehouse.archive.reader._SLAB_BYTES", 1)  # each body is read when its turn comes
    with Archive(root) as archive:
        made = [exchange(envelope({"of": number}), question(number)) for number in (1, 2, 3)]
        record(archive, *made)
        archive.seal_requests()
        coming = archive.responses([each.request_id for each in made])
        read = [next(coming).body]
        for path in (root / "requests").rglob("*.parquet"):
            path.unlink()
        archive._reader.forget_files()
        assert [*read, *(each.body for each in coming)] == [each.body for each in made]


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
        archive.record_exchange(exchange(b"x"))
    assert files(root) == []


def test_a_body_nested_too_deeply_to_be_read_is_kept_as_it_came(root: Path) -> None:
    body = b'{"response": {"data": ' + b"[" * 10_000 + b"]" * 10_000 + b"}}"
    with Archive(root) as archive:
        (id_,) = record(archive, exchange(body, outcome=Outcome.BROKEN))
    with Archive(root) as archive:
        assert rows(archive)[id_]["bytes"] == len(body)


def test_secret_parameters_leave_no_trace_not_even_a_hash(root: Path) -> None:
    register = find("register/createaccount")
    secret = next(parameter.name for parameter in register.parameters if parameter.secret)
    asked = Call(register, {secret: "hunter2hunter2"})
    with Archive(root) as archive:
        (request_id,) = record(archive, exchange(b"", asked))
        held = b"".join(path.read_bytes() for path in root.rglob("*") if path.is_file())
    held += b"".join(path.read_bytes() for path in root.rglob("*") if path.is_file())
    with Archive(root) as archive:
        row = rows(archive)[request_id]
        held += repr(list(archive.responses([request_id]))).encode() + repr(row).encode()
    assert json.loads(row["params"]) == {secret: "***"}
    assert b"hunter2" not in held
    assert row["question_key"] != asked.key


def test_exchanges_come_file_by_file_without_those_already_known(root: Path) -> None:
    with Archive(root) as archive:
        (first,) = record(archive, exchange(b"1"))
        archive.seal_requests()
        ((name, table),) = archive.list_exchanges()
        assert table["request_id"].to_pylist() == [first]
        assert "body" not in table.column_names
        (second,) = record(archive, exchange(b"2"))
        assert list(archive.list_exchanges({name})) == []
        archive.seal_requests()
        ((_, table),) = archive.list_exchanges({name})
        assert table["request_id"].to_pylist() == [second]


def test_a_file_that_could_not_be_completed_takes_no_space(root: Path) -> None:
    def break_off() -> Iterator[pa.Table]:
        yield SCHEMA.empty_table()
        raise ArchiveDamaged("cut")

    with closing(Workspace(root)) as workspace:
        with pytest.raises(ArchiveDamaged):
            write_sealed(break_off(), Files(root), "date=2026-11-20/one.parquet", workspace)
        assert [path for path in workspace.open_folder().iterdir() if path.suffix == ".parquet"] == []
    assert not list(root.glob("requests/**/*.parquet"))


def test_a_damaged_file_is_left_out_and_said(root: Path, caplog: pytest.LogCaptureFixture) -> None:
    with Archive(root) as archive:
        ids = record(archive, exchange(b"1"))
    (path,) = (root / "requests").rglob("*.parquet")
    path.write_bytes(b"PAR1 and nothing else")
    with caplog.at_level(logging.WARNING), Archive(root) as archive:
        assert list(archive.list_exchanges()) == []
        assert archive.find_reusable("main", 0, ALWAYS).get(question().key) is None
        with pytest.raises(ArchiveError):
            bodies(archive, ids)
    assert path.name in caplog.text
