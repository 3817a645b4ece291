"""People planted in every place by what puts them there: after `forget` no byte of any has a word of them, also when it was killed."""

from __future__ import annotations

import random
import shutil
import time
from pathlib import Path

import dagster as dg
import pytest

from marketing_api.sandbox.server import serve
from pipelines.dagster_internals import instance_of_the_ui
from pipelines.home import dagster_home
from tests.conftest import Once
from tests.depth import DEEP
from tests.pipelines import running
from tests.pipelines.conftest import STANDING, Command, Night
from tests.pipelines.sandboxes import Sandbox
from tests.pipelines.searching import found_in, rows_of_others
from tests.pipelines.tables import query
from warehouse.publish import earlier

pytestmark = [pytest.mark.attack, pytest.mark.timeout(3600)]
PEOPLE = 50 if DEEP else 4
NUMBERS = range(PEOPLE)
PLACES = {"MARKETING_LAKE_URL": "lake", "MARKETING_BACKUP_URL": "backup"}


def address(number: int) -> str:
    return f"zq{number:03}first@zq{number:03}dom.example"


def words(number: int) -> dict[str, str]:
    """Values of their custom fields, and what somebody noted of them."""
    return {
        "first": f"Zqf{number:03}",
        "last": f"Zql{number:03} O'Zq{number:03}é",
        "phone": f"+49773100{number:04}",
        "note": f"Zqn{number:03} called about a refund",
        "bad": f"Zqb{number:03}@",
    }


TOKENS = [token for number in NUMBERS for token in (address(number), *words(number).values())]


@pytest.fixture
def planted(planted_home: Path, tmp_path: Path) -> Path:
    """The folder of the home and everything outside of it that it knows of; to be changed."""
    place = tmp_path / "planted"
    shutil.copytree(planted_home, place, symlinks=True)
    exports = place / "home" / "exports.txt"
    exports.write_text(exports.read_text().replace(str(planted_home), str(place)))
    return place


@pytest.fixture(scope="session")
def planted_home(once: Once, nights: tuple[Night, Night]) -> Path:
    return once("planted-everywhere", lambda place: plant(place, nights[1].home))


def plant(place: Path, night: Path) -> None:
    home, folder = place / "home", place / "inputs"
    shutil.copytree(night, home)
    folder.mkdir()
    settings = {name: str(place / folder) for name, folder in PLACES.items()}
    with serve(STANDING) as url:
        service = Sandbox(url)

        def command(*line: str, code: int = 0, **more: str) -> None:
            ran = running.run(home, service, *line, **settings | more)
            assert ran.code == code, ran.text

        lists = [name for (name,) in query(home, "select name from source.lists order by list_id limit 1")]
        fields = dict(
            query(home, f"select label, field_id from source.list_fields join source.lists using (list_id) where name = '{lists[0]}'")
        )
        first, last, phone = (next(label for label in fields if word in label.lower()) for word in ("first", "last", "phone"))
        people = [f'{address(n)},{lists[0]},{w["first"]},"{w["last"]}",{w["phone"]}' for n in NUMBERS for w in [words(n)]]
        wrong = [f"{words(n)['bad']},{lists[0]},{words(n)['first']},x,{words(n)['phone']}" for n in NUMBERS]
        others = [f"bob{n}@other.example,{lists[0]},Bob,Other,+1999{n:07}" for n in range(3)]
        written = write(folder, "people.csv", f"email,list,{first},{last},{phone}", *people, *wrong, *others, ",x,Bob,y,z")
        command("push", "contacts", "--from", written, "--reject-limit", "90%", "--apply", code=1)
        command("push", "contacts", "--from", written, "--reject-limit", "90%", code=0)  # a dry run leaves what it would reject
        noted = [f"{address(n)},2026-01-0{n % 9 + 1} 10:00,{words(n)['note']}" for n in NUMBERS] + [
            "bob0@other.example,2026-01-01 10:00,hello"
        ]
        command("push", "activities", "--from", write(folder, "noted.csv", "email,datetime,description", *noted), "--apply")
        command("sync", "--reads-only", "--only", "lists", "contacts", "timelines", "coupons")
        command("publish", "--parquet", str(place / "parquet"))
        command("publish", "--parquet", str(place / "parquet"))
        command("push", "tags", "--from", write(folder, "tags.csv", "email,tag", *(f"{address(n)},vip" for n in NUMBERS)), "--apply")
        command("backup")
    shutil.rmtree(folder)
    leave_behind(home)


def write(folder: Path, name: str, *lines: str) -> str:
    path = folder / name
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return str(path)


def leave_behind(home: Path) -> None:
    """What killed and failed runs leave, and what was set aside."""
    text = "\n".join(f'{{"email": "{address(n)}", "9100": "{words(n)["first"]}", "{words(n)["phone"]}": 1}}' for n in NUMBERS)
    spool = home / "tmp" / "spool" / "20260101T000000000000Z-00000000"
    spool.mkdir(parents=True)
    (spool / "body").write_text(text)
    with next((home / "logs").glob("*-sync-*.log")).open("a", encoding="utf-8") as log:
        log.write(f"ValueError: {text}\n{words(0)['last']!r} %40\n")
    shutil.copy(home / "warehouse.duckdb", home / "warehouse.duckdb.damaged-20260101T000000000000Z-00000000")
    (home / "outbox.sqlite.damaged-20260101T000000000000Z-00000000").write_bytes(b"SQLite format 3\0" + text.encode())
    (home / "archive" / "loads.jsonl.damaged-20260101T000000000000Z-00000000").write_text(text)
    (home / "published" / "marketing.duckdb.damaged-1").write_bytes(b"\0" * 8 + b"DUCK" + text.encode())

    @dg.op
    def fails() -> None:
        raise ValueError(text)

    @dg.job(tags={"who": address(0)})
    def failing() -> None:
        fails()

    with dagster_home(home), instance_of_the_ui(home) as instance:
        failing.execute_in_process(instance=instance, raise_on_error=False, tags={"phone": words(1)["phone"]})


def settings_of(place: Path) -> dict[str, str]:
    return {name: str(place / folder) for name, folder in PLACES.items()}


def contacts_of(home: Path) -> list[int]:
    return [number for (number,) in query(home, "select distinct contact_id from source.contacts where email like 'zq%'")]


@pytest.fixture
def addresses(tmp_path: Path) -> str:
    return write(tmp_path, "forget.txt", *map(address, NUMBERS))


def test_they_are_everywhere_before(planted: Path) -> None:
    places = {name.split("/")[0] + "/" + name.split("/")[1] for name, _ in found_in(planted, TOKENS)}
    assert len(contacts_of(planted / "home")) == PEOPLE
    assert len(earlier(planted / "home")) >= 2
    wanted = ("archive", "published", "dagster", "logs", "pushes", "tmp", "outbox.sqlite", "outbox.copy.sqlite", "warehouse.duckdb")
    assert {f"home/{name}" for name in wanted} | {"lake/shards", "backup/main"} <= places
    assert any(name.startswith(".parquet-") for name, _ in found_in(planted, [address(0)]))


def test_no_byte_has_a_word_of_them_and_others_are_as_before(command: Command, planted: Path, addresses: str) -> None:
    home = planted / "home"
    before = rows_of_others(home, "zq", contacts_of(home))
    ran = command("forget", "--from", addresses, "--apply", MARKETING_HOME=str(home), **settings_of(planted))
    assert ran.code == 0, ran.text
    check(planted, before)
    assert command("backup", "--verify", MARKETING_HOME=str(home), **settings_of(planted)).code == 0
    assert command("lake", MARKETING_HOME=str(home), **settings_of(planted)).code == 0


def check(place: Path, before: dict[str, list[str]]) -> None:
    home = place / "home"
    assert found_in(place, TOKENS) == []
    after = rows_of_others(home, "zq", [])
    assert {name: set(rows) - set(after[name]) for name, rows in before.items() if set(rows) - set(after[name])} == {}
    assert not (home / "forgetting.json").exists()


def test_killed_at_any_moment_it_goes_on(planted: Path, addresses: str) -> None:
    home, moments = planted / "home", random.Random(20261124)
    before = rows_of_others(home, "zq", contacts_of(home))
    line = ("forget", "--from", addresses, "--apply")
    for _ in range(30 if DEEP else 2):
        process = running.start(home, None, *line, **settings_of(planted))
        time.sleep(moments.uniform(0.2, 6 if DEEP else 3))
        process.kill()
        process.communicate()
        line = ("forget", "--apply") if (home / "forgetting.json").exists() else line
    ended = running.run(home, None, *line, **settings_of(planted))
    assert ended.code == 0, ended.text
    check(planted, before)
