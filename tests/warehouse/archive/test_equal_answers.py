"""An equal answer is kept once; what finds it can be made again from the files."""

from collections.abc import Callable
from pathlib import Path

import pytest

from marketing_api.exchange import Outcome
from tests.warehouse.exchanges import ALWAYS, bodies, envelope, exchange, question, record, rows
from warehouse.archive.archive import Archive
from warehouse.errors import ArchiveDamaged


def test_an_equal_answer_is_stored_by_reference_whatever_the_rate_limit_says(root: Path) -> None:
    with Archive(root) as archive:
        (first,) = record(archive, exchange(envelope({"n": 1}, remaining=9)))
        archive.seal_requests()
        second, third = record(
            archive, exchange(envelope({"n": 1}, remaining=8)), exchange(envelope({"n": 1}, remaining=7))
        )
    with Archive(root) as archive:
        stored = rows(archive)
        assert [stored[id_]["body_ref"] for id_ in (first, second, third)] == [None, first, first]
        assert stored[second]["body_sha256"] != stored[first]["body_sha256"]
        assert bodies(archive, [third, second, first]) == [envelope({"n": 1}, remaining=9)] * 3


def test_an_answer_refers_only_to_the_last_one_of_its_own_question_and_account(root: Path) -> None:
    one, two = envelope({"n": 1}), envelope({"n": 2})
    with Archive(root) as archive:
        ids = record(
            archive,
            exchange(one),
            exchange(two),
            exchange(one),
            exchange(one, account="other"),
            exchange(one, question(2)),
        )
    with Archive(root) as archive:
        assert [rows(archive)[id_]["body_ref"] for id_ in ids] == [None] * 5


def test_an_earlier_answer_that_is_sealed_later_does_not_become_the_last(root: Path) -> None:
    with Archive(root) as slow, Archive(root) as quick:
        record(slow, exchange(envelope({"n": 1})))
        (last,) = record(quick, exchange(envelope({"n": 2})))
        quick.seal_requests()
        slow.seal_requests()
        (equal,) = record(quick, exchange(envelope({"n": 2})))
        quick.seal_requests()
        assert rows(quick)[equal]["body_ref"] == last


def test_only_whole_answers_are_referred_to(root: Path) -> None:
    with Archive(root) as archive:
        ids = record(
            archive,
            *(exchange(b'{"cut', outcome=Outcome.BROKEN) for _ in range(2)),
            *(exchange(b"") for _ in range(2)),
        )
    with Archive(root) as archive:
        assert [rows(archive)[id_]["body_ref"] for id_ in ids] == [None] * 4


@pytest.mark.parametrize("lose", [Path.unlink, lambda path: path.write_bytes(b"")])
def test_a_ledger_that_is_lost_is_made_of_the_files(root: Path, lose: Callable[[Path], None]) -> None:
    ids: list[int] = []
    for _ in range(2):
        with Archive(root) as archive:
            ids += record(archive, exchange(envelope({"n": 1}, remaining=len(ids))))
        lose(root / "ledger.sqlite")
    with Archive(root) as archive:
        assert [rows(archive)[id_]["body_ref"] for id_ in ids] == [None, ids[0]]
        assert len(bodies(archive, ids)) == 2


def test_a_ledger_that_goes_while_the_archive_is_open_is_made_of_the_files(root: Path) -> None:
    with Archive(root) as archive:
        first = record(archive, exchange(envelope({"n": 1})))
        archive.seal_requests()
        (root / "ledger.sqlite").rename(root.parent / "away")
        second = record(archive, exchange(envelope({"n": 1}, remaining=1)))
        archive.seal_requests()
        assert rows(archive)[second[0]]["body_ref"] == first[0]


def test_no_answer_refers_to_a_body_that_went_with_a_missing_file(
    root: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with Archive(root) as archive:
        (first,) = record(archive, exchange(envelope({"n": 1})))
        archive.seal_requests()
        (second,) = record(archive, exchange(envelope({"n": 1})))
    min((root / "requests").rglob("*.parquet")).unlink()
    with Archive(root) as archive:
        (third,) = record(archive, exchange(envelope({"n": 1})))
        archive.seal_requests()
        assert rows(archive)[third]["body_ref"] is None
        assert archive.find_reusable("main", 0, ALWAYS).get(question().key) is not None
        with pytest.raises(ArchiveDamaged, match=str(first)):
            bodies(archive, [second])
    assert "missing" in caplog.text
