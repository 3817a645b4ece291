"""Nothing about forgotten people is archived any more, and what was archived goes."""

import contextlib
import itertools
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from marketing_api.exchange import Outcome
from marketing_api.operations import contacts
from tests.warehouse.exchanges import NOON, envelope, exchange, files, rows
from warehouse.archive.archive import Archive
from warehouse.archive.ledger import Ledger
from warehouse.archive.suppression import NAME, add_people, lift_person, load_forgotten
from warehouse.errors import ArchiveDamaged, ArchiveError
from warehouse.forgetting import Person

ANN, BOB = "ann.lee@example.com", "bob@example.com"
PERSON = Person((ANN,), (("main", 7),))


def contact(number: int) -> dict[str, Any]:
    return {"id": number, "email": ANN if number == 7 else f"contact{number}@example.com"}


@pytest.fixture
def full(root: Path, spool: Path) -> Path:
    """Three nights: a listing too large for a row, unchanged timelines, refusals, a coupon, a killed run."""
    people = [contact(number) for number in range(1, 40)]
    for _ in range(3):
        with Archive(root, full_rows=30) as archive:
            spool.write_bytes(envelope({"contacts": {"count": len(people), "items": people}}))
            archive.record_exchange(exchange(spool, contacts.GETCONTACTS.bind(listid=3)))
            for one in people:
                archive.record_exchange(exchange(envelope(one), contacts.TIMELINE.bind(id=one["id"])))
            refused = {"outcome": Outcome.BROKEN, "error": f"no response for {ANN}"}
            archive.record_exchange(exchange(b"<html>", contacts.TIMELINE.bind(id=7), **refused))  # type: ignore[arg-type]
            archive.record_exchange(
                exchange(envelope({"coupons": []}), contacts.GETCOUPON.bind(email=ANN.upper()))
            )
            archive.record_exchange(exchange(envelope({"coupons": []}), contacts.GETCOUPON.bind(email=BOB)))
            archive.ledger.log_loads({"asset": "contacts", "scope": {"reason": f"without {ANN}"}})
    killed = Archive(root)
    killed.ledger.set_unfinished(killed.holder, 1, ["contacts"])
    killed.record_exchange(exchange(envelope(contact(7)), contacts.TIMELINE.bind(id=7)))
    killed.ledger.close()
    return root


def traces(root: Path) -> list[str]:
    """Files that name Ann once they are unpacked."""

    def plain(path: Path) -> bytes:
        if path.suffix == ".zst":
            return bytes(pa.CompressedInputStream(path, "zstd").read())
        if path.suffix == ".parquet":
            return repr(pq.read_table(path).to_pylist()).encode()
        return path.read_bytes()

    names = [*files(root), *(path.name for path in root.glob("ledger*"))]
    return [
        name for name in names if b"ann.lee" in (found := plain(root / name).lower()) or b'"id": "7"' in found
    ]


def drop(root: Path) -> None:
    with Archive(root) as archive:
        archive.drop_bodies(add_people(root, [PERSON]), NOON)


def without_people(found: dict[int, dict[str, Any]]) -> dict[int, Any]:
    kept = ("account", "operation", "requested_at", "outcome", "http_status", "bytes")
    return {request_id: [row[name] for name in kept] for request_id, row in found.items()}


def test_no_body_stays_and_calls_about_them_do_not_say_so(full: Path) -> None:
    with Archive(full) as archive:
        before = rows(archive)
    assert traces(full)
    drop(full)
    assert traces(full) == []
    assert list(full.rglob("*.zst")) == []
    with Archive(full) as archive:
        after = rows(archive)
        assert without_people(after) == without_people(before)
        changed = {id_ for id_ in before if before[id_]["params"] != after[id_]["params"]}
        assert {before[id_]["params"].lower() for id_ in changed} == {'{"id": "7"}', f'{{"email": "{ANN}"}}'}
        assert {after[id_]["params"] for id_ in changed} == {"{}"}
        assert len({after[id_]["question_key"] for id_ in changed}) == 2, "one an operation"
        assert list(archive.ledger.list_loads()) == []
        assert archive.ledger.find_unfinished() == {}
        with pytest.raises(ArchiveDamaged, match="kept no longer"):
            list(archive.responses([max(after)]))


def test_what_is_said_again_is_archived_again(full: Path) -> None:
    drop(full)
    again = envelope(contact(8))
    with Archive(full) as archive:
        archive.record_exchange(one := exchange(again, contacts.TIMELINE.bind(id=8)))
    with Archive(full) as archive:
        assert [response.body for response in archive.responses([one.request_id])] == [again]


def test_interrupted_at_any_step_the_next_time_ends_the_same(
    full: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Archive(full) as archive:
        before = without_people(rows(archive))
    for moment in itertools.count():
        steps = itertools.count()

        def cut(original: Any, moment: int = moment, steps: Any = steps) -> Any:
            def step(*args: Any, **kwargs: Any) -> Any:
                if next(steps) == moment:
                    raise KeyboardInterrupt
                return original(*args, **kwargs)

            return step

        with monkeypatch.context() as patched, contextlib.suppress(KeyboardInterrupt):
            for name in ("warehouse.disk.move_into_place", "warehouse.archive.compaction.retire_files"):
                module, _, function = name.rpartition(".")
                patched.setattr(name, cut(getattr(__import__(module, fromlist=[function]), function)))
            patched.setattr(Ledger, "replace_files", cut(Ledger.replace_files))
            patched.setattr(Ledger, "clear_loads", cut(Ledger.clear_loads))
            drop(full)
            break
    assert moment > 3
    assert traces(full) == []
    with Archive(full) as archive:
        assert without_people(rows(archive)) == before


def test_nobody_is_forgotten_while_another_process_records(full: Path) -> None:
    with Archive(full) as other:
        other.ledger.begin_recording()
        with pytest.raises(ArchiveError, match="another process"):
            drop(full)


def test_a_file_that_cannot_be_read_goes_as_a_whole(full: Path, caplog: pytest.LogCaptureFixture) -> None:
    damaged = sorted(full.glob("requests/*/*.parquet"))[0]
    damaged.write_bytes(damaged.read_bytes()[:-100])
    drop(full)
    assert "is removed, it may name somebody" in caplog.text
    assert not damaged.exists()
    assert traces(full) == []


def test_they_are_never_archived_again_by_whoever_has_it_open(root: Path, spool: Path) -> None:
    with Archive(root) as archive:
        add_people(root, [PERSON])
        spool.write_bytes(envelope({"contacts": {"count": 1, "items": [contact(7)]}}))
        archive.record_exchange(exchange(spool, contacts.GETCONTACTS.bind(listid=3)))
        archive.record_exchange(exchange(envelope(contact(7)), contacts.TIMELINE.bind(id=7)))
        archive.record_exchange(
            exchange(envelope({"coupons": [{"email": ANN}]}), contacts.GETCOUPON.bind(email=BOB))
        )
    assert traces(root) == []


def test_the_list_names_nobody_and_a_person_can_be_lifted(root: Path) -> None:
    add_people(root, [PERSON, Person((BOB,))])
    add_people(root, [PERSON])
    path = root / NAME
    assert path.stat().st_mode & 0o077 == 0
    assert not any(text in path.read_text() for text in (ANN, BOB, '"7"'))
    assert load_forgotten(root).is_contact("main", 7)
    assert lift_person(root, Person((), (("main", 7),))) == 1
    assert lift_person(root, PERSON) == 0
    left = load_forgotten(root)
    assert (left.is_address(ANN), left.is_address(BOB)) == (False, True)


@pytest.mark.parametrize("damaged", ["{", '{"key": "no number", "people": []}'])
def test_nothing_is_archived_past_a_damaged_list(root: Path, damaged: str) -> None:
    add_people(root, [PERSON])
    (root / NAME).write_text(damaged)
    with Archive(root) as archive, pytest.raises(ArchiveDamaged, match="put it back from a backup"):
        archive.record_exchange(exchange(envelope({}), contacts.TIMELINE.bind(id=8)))
