"""Spreadsheets as people have them: a push explains what it can't read, and gives each row one outcome."""

import datetime as dt
import shlex
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest

from home import output
from tests.fixtures import Command
from tests.marketing_sync.test_push_rejected import records
from tests.pipelines.sandboxes import Sandbox
from tests.write_back.input.test_workbook import book, sheets

#: Fields of the list Newsletter.
NEWS, CITY, PHONE, VISIT = "Newsletter", "9103", "9102", "9104"


class Case(NamedTuple):
    """`advice`: the answer to a push without options; `options`: what a person types then, with the `mended`
    file if they have to change it. `seen`: a field of the fifth person as the service has it then.
    `rejected`: where the rejected rows are, in order."""

    name: str
    content: bytes
    advice: str = ""
    options: tuple[str, ...] = ()
    mended: bytes = b""
    seen: tuple[str, str] = (CITY, "Rome")
    rejected: tuple[str, ...] = ()


def person(number: int) -> str:
    return f"person{number}@example.com"


def table(*titles: str | None, **values: Any) -> list[tuple[Any, ...]]:
    """Five people; `values` by title, the same for all unless it is a list."""
    columns = {"email": list(map(person, range(1, 6))), "list": NEWS, "city": "Rome"} | values
    cells = [columns.get(title or "") for title in titles]
    return [titles, *zip(*(some if isinstance(some, list) else [some] * 5 for some in cells), strict=True)]


def renamed(people: list[tuple[Any, ...]], *titles: str) -> list[tuple[Any, ...]]:
    return [titles, *people[1:]]


def text(people: list[tuple[Any, ...]], delimiter: str, encoding: str) -> bytes:
    return "\r\n".join(delimiter.join(map(str, row)) for row in people).encode(encoding)


PEOPLE = table("email", "city", "list")
FRENCH = renamed(table("email", "city", "list", city="Orléans"), "Adresse e-mail", "Ville", "Liste")
GERMAN = table("email", "city", "list", "sum", "day", city="Köln", sum="1.234,50", day="20.11.2026")
MAILCHIMP = ("Email Address", "City", "MEMBER_RATING", "OPTIN_TIME", "TAGS")
EXPORT = table("email", "city", "rating", "time", "tags", rating=2, time="2025-03-01 10:00:00", tags="vip")
LISTED = [(*row, NEWS if number else "List") for number, row in enumerate(renamed(EXPORT, *MAILCHIMP))]
TITLES = [("Sign-ups of November",), ("as of", dt.datetime(2026, 11, 20)), ()]
GROUPS = [("Person", None, "Place"), *PEOPLE]
TWICE = [(person(1), "Rome", NEWS), (person(4).upper(), "Milan", NEWS), (None, None, NEWS)]
DAYS = [dt.datetime(2026, 11, 20 + number) for number in range(5)]
PHONES = table(
    "email", "Phone", "Last Visit", "list", Phone=[*range(491701234561, 491701234566)], **{"Last Visit": DAYS}
)
FORMULAS = [*PEOPLE[:2], (person(2), '=UPPER("rome")', NEWS), (person(3), "#N/A", NEWS), *PEOPLE[4:]]

CASES = [
    Case("sheets.xlsx", sheets(Kunden=PEOPLE, Preise=[("Wein", 12.5)])),
    Case(
        "readme.xlsx",
        sheets(Readme=[("Please fill in the other sheet",), ("Ann",)], People=PEOPLE),
        advice="the sheet “Readme” is read; --sheet chooses another: “People”",
        options=("--sheet", "People"),
    ),
    Case(
        "mailchimp.csv",
        text(renamed(EXPORT, *MAILCHIMP), ",", "utf-8"),
        advice="--ignore MEMBER_RATING OPTIN_TIME TAGS",
        options=("--ignore", *MAILCHIMP[2:]),
        mended=text(LISTED, ",", "utf-8"),
    ),
    Case(
        "title.xlsx",
        book(*TITLES, *PEOPLE),
        advice="its first row, “Sign-ups of November”, is data or a title: it has to name the columns",
        mended=book(*PEOPLE),
    ),
    Case("merged.xlsx", book(*GROUPS, merged=["A1:B1"]), advice="merged cells, like A1:B1", mended=book(*PEOPLE)),
    Case(
        "german.csv",
        text(renamed(GERMAN, "E-Mail", "City", "Liste", "Phone", "Last Visit"), ";", "cp1252"),
        advice="--encoding windows-1252",
        options=("--encoding", "windows-1252"),
        seen=(PHONE, "1.234,50"),
    ),
    Case(
        "french.xlsx",
        book(*FRENCH),
        advice="say which it is with --map OURS=Ville",
        options=("--map", "City=Ville"),
        seen=(CITY, "Orléans"),
    ),
    Case(
        "duplicates.xlsx",
        book(*table(None, "email", "city", None, "list", "Comment"), (), *((None, *row[:2], None, row[2]) for row in TWICE)),
        options=("--reject-limit", "1"),
        rejected=tuple(f"sheet “Sheet”, row {row}" for row in (5, 8, 9, 10)),
    ),
    Case(
        "formulas.xlsx",
        book(*FORMULAS),
        advice="the formula in cell B3 has no stored value",
        options=("--reject-limit", "1"),
        rejected=("sheet “Sheet”, row 3", "sheet “Sheet”, row 4"),
    ),
    Case("phones.xlsx", book(*PHONES, formats={"C6": "dd.mm.yyyy"}), seen=(VISIT, "24.11.2026")),
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_a_few_rows_are_sent_then_the_others_and_each_has_one_outcome(
    command: Command, service: Sandbox, home: Path, folder: Path, case: Case
) -> None:
    (folder / case.name).write_bytes(case.content)
    words = ("push", "contacts", "--from", case.name)
    planned = command(*words, sandbox=service)
    assert (planned.code == 0) == (case.advice == "" and not case.rejected), planned.text
    assert case.advice in planned.text
    assert service.count == 0

    (folder / case.name).write_bytes(case.mended or case.content)
    first = command(*words, *case.options, "--first", "3", "--apply", sandbox=service)
    assert first.code == int("not done" in first.out), first.text
    few = service.control("written")["contacts"]
    assert 0 < len(few) <= 3
    rest = shlex.split(first.out.partition("to send the other rows:")[2])[1:]
    ran = command(*rest, "--json", sandbox=service)
    assert ran.code == bool(case.rejected), ran.text
    (result,) = msgspec.json.decode(ran.out, type=output.Push).results
    assert sum(result.rows.values()) == result.row_count
    assert (result.rows["skipped"], result.rows.get("rejected", 0)) == (len(few), len(case.rejected))

    rejected = command("push", "status", "--rejected", sandbox=service)
    places = [f"{case.name}, {place}" for place in case.rejected]
    assert [row[1] for row in records(rejected.out)[1:]] == places
    people = {each["email"]: each["values"] for each in service.control("written")["contacts"].values()}
    assert len(people) == result.row_count - len(case.rejected)
    field, value = case.seen
    assert people[person(5)][field] == value
