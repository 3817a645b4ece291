"""A sample of `failpoints`: it counts, each kind of fault strikes, and what is wrong is found."""

import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.attack.failpoints import attack
from tests.attack.judging import Verdict
from tests.attack.places import ROOT, Place

PROBE = """
import os, sqlite3, sys
from pathlib import Path
from tests.attack import places
places.OURS = (str(Path.cwd()),)
found = places.Places(sys.argv[1], places.Place.read(sys.argv[2]) if sys.argv[2] else None)
places.install(found)
exec(compile(Path("program.py").read_text(), str(Path("program.py").resolve()), "exec"))
print(*sorted(f"{kind} {count}" for (kind, _), count in found.seen.items()), sep=", ")
"""
PROGRAM = """
import os, sqlite3
for number in range(3):
    with open("lines", "a") as file:
        file.write("0123456789")
os.replace("lines", "moved")
connection = sqlite3.connect("data")
connection.execute("create table t (n)")
connection.execute("select * from t")
connection.execute("insert into t values (1)")
connection.commit()
"""


def probe(folder: Path, fault: str = "", at: str = "") -> subprocess.CompletedProcess[str]:
    (folder / "program.py").write_text(PROGRAM)
    return subprocess.run(
        [sys.executable, "-c", PROBE, fault, at],
        cwd=folder,
        env={"PYTHONPATH": ROOT},
        capture_output=True,
        text=True,
        check=False,
    )


def test_every_call_that_can_fail_is_a_place(tmp_path: Path) -> None:
    ran = probe(tmp_path)
    assert ran.stdout.split(", ") == sorted(ran.stdout.split(", "))
    assert Counter(word.split()[0] for word in ran.stdout.split(", ")) == {
        "look": 1,
        "name": 1,
        "open": 2,
        "sqlite": 3,
        "write": 1,
    }
    assert "write 3" in ran.stdout


@pytest.mark.parametrize(
    ("fault", "code", "left"),
    [
        ("kill", -9, "0123456789"),
        ("torn", -9, "012345678901234"),
        ("error", 1, "01234567890123456789"),  # closing the file tries once more, and then there is room
        ("full", 1, "0123456789"),
    ],
)
def test_a_fault_strikes_at_its_place_and_nowhere_else(
    tmp_path: Path, fault: str, code: int, left: str
) -> None:
    ran = probe(tmp_path, fault, f"write@{tmp_path}/program.py:4#2")
    assert ran.returncode == code, ran.stderr
    assert (tmp_path / "lines").read_text() == left
    assert fault in ("kill", "torn") or "No space left" in ran.stderr


def test_a_place_reads_back_as_it_is_written() -> None:
    place = Place("duckdb", "model.marketing_sync.contact#1", 12)
    assert Place.read(str(place)) == place


def test_a_row_too_few_and_one_too_many_are_found() -> None:
    verdict = Verdict()
    verdict.compare("source.lists", Counter({("a",): 1, ("b",): 1}), Counter({("b",): 2}))
    assert (verdict.lost, verdict.duplicated, verdict.is_clean) == (1, 1, False)


@pytest.mark.attack
def test_a_push_stands_a_sample_of_faults() -> None:
    """At least three cases, as many as 25 seconds allow."""
    assert "push activities" in attack(0.4, 1, "push activities")
