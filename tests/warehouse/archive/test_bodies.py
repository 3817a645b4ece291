"""Large bodies, each in a file of its own."""

import hashlib
from pathlib import Path

import pytest

from tests.warehouse.exchanges import ALWAYS, bodies, envelope, exchange, question, record, rows
from warehouse.archive.archive import Archive
from warehouse.errors import ArchiveDamaged


def test_a_spooled_body_goes_from_file_to_file(root: Path, spool: Path) -> None:
    with Archive(root) as archive:
        large, small = record(archive, exchange(spool), exchange(envelope({"n": 1})))
        for _ in range(2):
            answers = archive.responses([large, small])
            body = next(answers).body
            assert isinstance(body, Path)
            assert body.read_bytes() == spool.read_bytes()
            next(answers)
            assert not body.exists()
            archive.seal_requests()
        row = rows(archive)[large]
        assert row["body_file"] == f"bodies/date=2026-11-20/{large}.json.zst"
        assert (row["bytes"], row["body_sha256"]) == (
            spool.stat().st_size,
            hashlib.sha256(spool.read_bytes()).hexdigest(),
        )
        assert row["content_sha256"] != row["body_sha256"]
        assert spool.exists()


def test_a_repeated_large_body_is_kept_once(root: Path, spool: Path) -> None:
    with Archive(root) as archive:
        (first,) = record(archive, exchange(spool))
        archive.seal_requests()
        (second,) = record(archive, exchange(spool))
        with Archive(root) as other:
            answers = other.responses([second])  # another process has found it, and then it is sealed
            other._reader._find_rows([second])
            archive.seal_requests()
            assert next(answers).body.read_bytes() == spool.read_bytes()  # type: ignore[union-attr]
            answers.close()  # type: ignore[attr-defined]
        assert rows(archive)[second]["body_ref"] == first
        assert [path.name for path in (root / "bodies").rglob("*.zst")] == [f"{first}.json.zst"]
        reused = archive.find_reusable("main", 0, ALWAYS).get(question().key)
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
            packed.write_bytes(
                content[:-100] if damage == "cut" else content[:999] + b"zzzzzzzz" + content[1007:]
            )
        with pytest.raises(ArchiveDamaged, match=str(ids[0])):
            bodies(archive, ids)
        assert archive.find_reusable("main", 0, ALWAYS).get(question().key) is None
