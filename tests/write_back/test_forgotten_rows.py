"""Nothing is pushed about people who asked to be forgotten, and nothing is kept of rows about them."""

from pathlib import Path

import duckdb
import pytest

from tests.fixtures import Command
from tests.marketing_sync.test_push_command import sent, write
from tests.pipelines.sandboxes import Sandbox
from tests.pipelines.tables import query
from tests.write_back.planner import rows_of
from warehouse.archive.suppression import add_people
from warehouse.forgetting import Forgotten, Person
from write_back.forgetting import delete_from_pushes
from write_back.outbox.outbox import open_outbox
from write_back.planning import FORGOTTEN, without_forgotten

ANN, BOB = "ann@example.com", "bob@example.com"
PERSON = Person((ANN,), (("main", 7),))
WHO = Forgotten(b"k", frozenset(Forgotten(b"k").fingerprints_of(PERSON)))


@pytest.mark.parametrize(
    ("row", "mapping"),
    [
        ({"email": " Ann@Example.com", "tag": "vip"}, {}),
        ({"email": f"Ann <{ANN}>", "tag": "vip"}, {}),
        ({"contact_id": 7, "tag": "vip"}, {}),
        ({"Contact-ID": "7", "tag": "vip"}, {}),
        ({"number": "7", "tag": "vip"}, {"contact_id": "number"}),
        ({"email": BOB, "tag": "vip", "referred by": ANN}, {}),
    ],
)
def test_a_row_about_them_is_rejected_and_empty(row: dict[str, object], mapping: dict[str, str]) -> None:
    rows = without_forgotten(rows_of(dict.fromkeys(row, "other"), row), "main", WHO, mapping)
    assert rows.faults == {3: FORGOTTEN}
    assert [cells[1] for cells in rows.cells.values()] == [None] * len(row)
    assert [cells[0] for cells in rows.cells.values()] == ["other"] * len(row)
    assert without_forgotten(rows, "main", WHO, mapping) == rows


def test_rows_about_others_stay() -> None:
    rows = rows_of({"email": BOB, "age": "7"}, {"email": "joann@example.com", "age": "8"})
    assert without_forgotten(rows, "main", WHO, {}) == rows
    ids = rows_of({"contact_id": "7"})
    assert without_forgotten(ids, "another", WHO, {}) == ids


def test_a_push_keeps_nothing_of_them(command: Command, service: Sandbox, home: Path, folder: Path) -> None:
    sql = (
        "select min(email) as email, contact_id from source.contacts where status = 'active' group by all "
        "order by 1 limit 2"
    )
    (ann, number), (bob, _) = query(home, sql)
    add_people(home / "archive", [Person((ann,), (("main", number),))])
    file = write(folder, "rows.csv", "email,tag", f"{ann.upper()},vip", f"{bob},vip")
    ran = command("push", "tags", "--from", file, "--reject-limit", "1", "--apply", sandbox=service)
    assert ran.code == 1, ran.text
    assert "asked to be forgotten" in ran.text
    assert [each for each in sent(service) if each == "addtag"] == ["addtag"]
    rejected = (home / "pushes" / "1" / "rejected.csv").read_text(encoding="utf-8-sig")
    assert FORGOTTEN in rejected
    for path in (
        path
        for path in home.rglob("*")
        if path.is_file() and path.name not in ("warehouse.duckdb", "warehouse.duckdb.wal")
    ):
        if "requests" not in path.parts:  # known before, and not pushed
            assert ann.lower() not in path.read_bytes().decode("latin-1").lower(), path


def test_rows_of_earlier_pushes_go_by_id_and_whole_without_their_push(
    command: Command, service: Sandbox, home: Path, folder: Path
) -> None:
    ((number,),) = query(home, "select max(contact_id) from source.contacts where status = 'active'")
    file = write(folder, "rows.csv", "number,tag", f"{number},vip")
    ran = command("push", "tags", "--from", file, "--map", "contact_id=number", "--apply", sandbox=service)
    assert ran.code == 0, ran.text
    who = add_people(home / "archive", [Person((), (("main", number),))])
    with open_outbox(home) as outbox:
        erased = delete_from_pushes(home, outbox, who, apply=True)
        assert list(erased) == [(home / "pushes" / "1" / "rows.parquet", 1)]
    for path in home.glob("outbox*"):
        path.unlink()
    with open_outbox(home) as outbox:
        assert list(delete_from_pushes(home, outbox, who, apply=True)) == []
    assert not (home / "pushes" / "1").exists()


def test_an_audience_that_has_them_pushes_nothing_about_them(
    command: Command, service: Sandbox, home: Path, folder: Path
) -> None:
    (folder / "activations.toml").write_text(
        '[activations.vip]\nquery = "select email from source.segment"\ntag = "vip"\n'
    )
    with duckdb.connect(str(home / "warehouse.duckdb")) as connection:
        connection.execute("create table source.segment as select ? as email", [ANN])
    add_people(home / "archive", [Person((ANN,))])
    ran = command("push", "activations", "vip", "--apply", sandbox=service)
    assert "asked to be forgotten" in ran.text
    assert not sent(service)
