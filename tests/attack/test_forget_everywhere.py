"""People planted in every place by what puts them there: after `forget` nothing of ours has a row of theirs,
and everybody else is as before, also when it was killed."""

from __future__ import annotations

import random
import shutil
import time
from pathlib import Path

import dagster as dg
import duckdb
import pytest

from home.folder import dagster_home
from pipelines.dagster_internals import instance_of_the_ui
from tests.conftest import Once
from tests.depth import DEEP
from tests.dialects.server import serve
from tests.fixtures import STANDING, Command, Night
from tests.pipelines import running
from tests.pipelines.sandboxes import Sandbox, move_account
from tests.pipelines.searching import found_in, rows_of_others
from tests.pipelines.tables import query

pytestmark = [pytest.mark.attack, pytest.mark.timeout(3600)]
PEOPLE = 50 if DEEP else 4
NUMBERS = range(PEOPLE)
PLACES = {"MARKETING_BACKUP_DIR": "backup"}


#: Ordinary words that some of them have in their fields: keys of `version`, of Dagster's settings, of folders.
ORDINARY = ("Archive", "Concurrency", "Lighthouse", "warehouse", "history", "main")


def address(number: int) -> str:
    """Every fifth is not plain ASCII."""
    return f"zq{number:03}{'é' if number % 5 == 4 else ''}first@zq{number:03}dom.example"


def words(number: int) -> dict[str, str]:
    """Values of their custom fields, and what somebody noted of them."""
    return {
        "first": ORDINARY[number // 2 % len(ORDINARY)] if number % 2 else f"Zqf{number:03}",
        "last": f"Zql{number:03} O'Zq{number:03}é",
        "phone": f"+49773100{number:04}",
        "note": f"Zqn{number:03} called about a refund",
    }


#: What nobody else has.
TOKENS = [
    token
    for number in NUMBERS
    for token in (address(number), *words(number).values())
    if token not in ORDINARY
]
#: Whose addresses contain theirs.
OTHERS = [form.format(address(number)) for number in NUMBERS[:4] for form in ("jo{}", "{}.example")]


@pytest.fixture
def planted(planted_home: Path, tmp_path: Path) -> Path:
    """The folder of the home and everything outside of it that it knows of; to be changed."""
    place = tmp_path / "planted"
    shutil.copytree(planted_home, place, symlinks=True)
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
        move_account(home, url)

        def command(*line: str, code: int = 0, **more: str) -> None:
            ran = running.run(home, service, *line, **settings | more)
            assert ran.code == code, ran.text

        lists = [name for (name,) in query(home, "select name from source.lists order by list_id limit 1")]
        fields = dict(
            query(
                home,
                "select label, field_id from source.list_fields join source.lists using (list_id) where "
                f"name = '{lists[0]}'",
            )
        )
        first, last, phone = (
            next(label for label in fields if word in label.lower()) for word in ("first", "last", "phone")
        )
        people = [
            f'{address(n)},{lists[0]},{w["first"]},"{w["last"]}",{w["phone"]}'
            for n in NUMBERS
            for w in [words(n)]
        ]
        wrong = [f"{address(n)},no list,{words(n)['first']},x,{words(n)['phone']}" for n in NUMBERS]
        others = [
            f"{each},{lists[0]},Bob,Other,+1999{n:07}"
            for n, each in enumerate([*OTHERS, *(f"bob{n}@other.example" for n in range(3))])
        ]
        written = write(
            folder, "people.csv", f"email,list,{first},{last},{phone}", *people, *wrong, *others, ",x,Bob,y,z"
        )
        command("push", "contacts", "--from", written, "--reject-limit", "90%", "--apply", code=1)
        command(
            "push", "contacts", "--from", written, "--reject-limit", "90%", code=0
        )  # a dry run leaves what it would reject
        noted = [f"{address(n)},2026-01-0{n % 9 + 1} 10:00,{words(n)['note']}" for n in NUMBERS] + [
            "bob0@other.example,2026-01-01 10:00,hello"
        ]
        command(
            "push",
            "activities",
            "--from",
            write(folder, "noted.csv", "email,datetime,description", *noted),
            "--apply",
        )
        command("sync", "--reads-only", "--only", "lists", "contacts", "timelines", "coupons")
        white_space(home)
        command("publish")
        command("publish")
        command(
            "push",
            "tags",
            "--from",
            write(folder, "tags.csv", "email,tag", *(f"{address(n)},vip" for n in NUMBERS)),
            "--apply",
        )
        command("backup")
    shutil.rmtree(folder)
    leave_behind(home)


def white_space(home: Path) -> None:
    """Every seventh has some around the address, as a service may send it."""
    with duckdb.connect(str(home / "warehouse.duckdb")) as connection:
        for n in NUMBERS[3::7]:
            for table in ("source.contacts", "source.coupons", "sync.contact_coverage"):
                connection.execute(
                    f"update {table} set email = ? where email = ?", [f" {address(n).upper()}\t", address(n)]
                )


def write(folder: Path, name: str, *lines: str) -> str:
    path = folder / name
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return str(path)


def leave_behind(home: Path) -> None:
    """What killed and failed runs leave, and what was set aside."""
    text = "\n".join(
        f'{{"email": "{address(n)}", "9100": "{words(n)["first"]}", "{words(n)["phone"]}": 1}}'
        for n in NUMBERS
    )
    spool = home / "tmp" / "spool" / "20260101T000000000000Z-00000000"
    spool.mkdir(parents=True)
    (spool / "body").write_text(text)
    with next((home / "logs").glob("*-sync-*.log")).open("a", encoding="utf-8") as log:
        log.write(f"ValueError: {text}\n{words(0)['last']!r} %40\n")
    shutil.copy(home / "warehouse.duckdb", home / "warehouse.duckdb.damaged-20260101T000000000000Z-00000000")
    (home / "outbox.sqlite.damaged-20260101T000000000000Z-00000000").write_bytes(
        b"SQLite format 3\0" + text.encode()
    )
    (home / "archive" / "ledger.sqlite.damaged-20260101T000000000000Z-00000000").write_bytes(
        b"SQLite format 3\0" + text.encode()
    )
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
    not_theirs = "email not like 'jo%' and email not like '%.example.example'"
    sql = f"select distinct contact_id from source.contacts where email ilike '%zq%' and {not_theirs}"
    return [number for (number,) in query(home, sql)]


@pytest.fixture
def addresses(tmp_path: Path) -> str:
    return write(tmp_path, "forget.txt", *map(address, NUMBERS))


def test_they_are_everywhere_before(planted: Path) -> None:
    places = {"/".join(name.split("/")[:2]) for name, _ in found_in(planted, TOKENS)}
    assert len(contacts_of(planted / "home")) == PEOPLE
    wanted = (
        "archive",
        "published",
        "dagster",
        "logs",
        "pushes",
        "tmp",
        "outbox.sqlite",
        "outbox.copy.sqlite",
        "warehouse.duckdb",
    )
    assert {f"home/{name}" for name in wanted} | {"backup/main"} <= places


def others_of(home: Path, contacts: list[int]) -> dict[str, list[str]]:
    return rows_of_others(home, list(map(address, NUMBERS)), contacts)


def test_nothing_of_them_is_left_and_others_are_as_before(
    command: Command, planted: Path, addresses: str
) -> None:
    home = planted / "home"
    before, ours = others_of(home, contacts_of(home)), own_files(home)
    ran = command("forget", "--from", addresses, "--apply", MARKETING_HOME=str(home), **settings_of(planted))
    assert ran.code == 0, ran.text
    check(planted, before, ours)
    assert command("backup", MARKETING_HOME=str(home), **settings_of(planted)).code == 0


def own_files(home: Path) -> dict[str, bytes]:
    """Files that the program itself needs."""
    names = ("version", "dagster/dagster.yaml", "personal.key")
    return {name: (home / name).read_bytes() for name in names if (home / name).exists()}


def check(place: Path, before: dict[str, list[str]], ours: dict[str, bytes]) -> None:
    home = place / "home"
    assert found_in(place, TOKENS) == []
    after = others_of(home, [])
    assert {
        name: set(rows) - set(after[name]) for name, rows in before.items() if set(rows) - set(after[name])
    } == {}
    assert own_files(home) == ours
    assert not (home / "forgetting.json").exists()
    for line in (
        ("status",),
        ("publish",),
        ("person", OTHERS[0]),
        ("rebuild",),
        ("backup",),
    ):
        ran = running.run(home, None, *line, **settings_of(place))
        assert ran.code == 0, ran.text


def test_killed_at_any_moment_it_goes_on(planted: Path, addresses: str) -> None:
    home, moments = planted / "home", random.Random(20261124)
    before, ours = others_of(home, contacts_of(home)), own_files(home)
    line = whole = ("forget", "--from", addresses, "--apply")
    for _ in range(30 if DEEP else 2):
        process = running.start(home, None, *line, **settings_of(planted))
        time.sleep(moments.uniform(0.2, 6 if DEEP else 3))
        process.kill()
        process.communicate()
        line = whole
        if (home / "forgetting.json").exists():
            line = ("forget", "--apply")
    ended = running.run(home, None, *line, **settings_of(planted))
    assert ended.code == 0, ended.text
    check(planted, before, ours)
