"""Files that a person wants pushed, drawn for an account, each with what it asks for. Not here: how they are
pushed and judged.

What a file asks for is known by construction: rows that must have an effect, rows that must be refused, and
no more."""

from __future__ import annotations

import csv
import datetime as dt
import io
import random
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from .account import Account, Member
from .texts import WILD

Cell = str | int | None
#: What stands for an empty cell in any file.
NOTHING = {"null", "N/A"}
#: Each must arrive character by character: what spreadsheets, CSV, HTML and query strings treat as their own.
TEXTS = [
    *(
        text
        for text in WILD
        if text not in NOTHING and not set(text) & set("\x01\x02\x1b\x1f\x7f\x85\u2028\u2029\ufeff")
    ),
    "=1+1",
    '=HYPERLINK("https://example.com","x")',
    "+49 30 1234, -5, @home",
    "-",
    "line\nbreak",
    "a & b < c > d \"e\" 'f'",
    "&amp; already escaped &#039;",
    "100% of a+b=c?d&e#f",
    "ein  doppelter   Leerraum",
    "👍🏽",
]


@dataclass
class File:
    """Rows under a header and what they ask of the account; rows are numbered as in a spreadsheet, the first
    below the header is 2."""

    kind: str  # the command's word
    header: list[str]
    rows: list[list[Cell]] = field(default_factory=list)
    bad: dict[int, str] = field(default_factory=dict)  # row number -> what is wrong with it
    unknown: set[int] = field(default_factory=set)  # row numbers of contacts that the account doesn't have
    activities: Counter[tuple[int, dt.datetime, str]] = field(
        default_factory=Counter
    )  # contact, local time, text
    contacts: dict[tuple[int, str], tuple[int | None, dict[str, str]]] = field(
        default_factory=dict
    )  # list, address -> status, fields
    tags: dict[int, dict[str, bool]] = field(
        default_factory=dict
    )  # contact -> tag -> whether it is there in the end

    def add(self, *cells: Cell, bad: str = "", is_unknown: bool = False) -> None:
        self.rows.append(list(cells))
        if bad:
            self.bad[len(self.rows) + 1] = bad
        if is_unknown:
            self.unknown.add(len(self.rows) + 1)

    def csv(self) -> str:
        text = io.StringIO(newline="")
        csv.writer(text).writerows([self.header, *self.rows])
        return text.getvalue()

    def save(self, path: Path) -> Path:
        """As CSV, Excel or Parquet, by the name's suffix. Text stays text."""
        if path.suffix == ".csv":
            path.write_text(self.csv(), encoding="utf-8", newline="")
        elif path.suffix == ".xlsx":
            _save_excel(self, path)
        else:
            _save_parquet(self, path)
        return path


def _save_excel(file: File, path: Path) -> None:
    import openpyxl  # it takes half a second

    book = openpyxl.Workbook()
    sheet = book.worksheets[0]
    sheet.append(file.header)
    for number, row in enumerate(file.rows, 2):
        for column, value in enumerate(row, 1):
            cell = sheet.cell(number, column)
            cell.value = value
            if isinstance(value, str):
                cell.data_type = "s"  # otherwise a leading = makes it a formula
    book.save(path)


def _save_parquet(file: File, path: Path) -> None:
    import pyarrow
    import pyarrow.parquet

    columns = zip(*[[None if cell is None else str(cell) for cell in row] for row in file.rows], strict=True)
    pyarrow.parquet.write_table(pyarrow.table(dict(zip(file.header, map(list, columns), strict=True))), path)


def addressed(made: Account) -> list[Member]:
    """One membership of each contact whose address is its own: it can be named by id and by address alike."""
    ids: dict[str, set[int]] = {}
    for member in made.members:
        ids.setdefault(member.email.lower(), set()).add(member.contact_id)
    chosen = {
        member.contact_id: member
        for member in made.members
        if "@" in member.email and len(ids[member.email.lower()]) == 1
    }
    return [chosen[contact_id] for contact_id in sorted(chosen)]


def _bearable(file: File, bad: int) -> int:
    """So many bad rows that the file is not refused as a whole: more than 5 % are."""
    return min(bad, len(file.rows) // 25)


def _text(rng: random.Random, number: int) -> str:
    return rng.choice(TEXTS) if rng.random() < 0.4 else f"Called about order {number}"


def meant(text: str) -> str:
    """What is compared of a text: blanks around it say nothing, and Excel keeps one kind of line end only."""
    return text.replace("\r\n", "\n").strip()


def _who(rng: random.Random, member: Member) -> tuple[Cell, Cell]:
    """`email` and `contact_id`: either names the contact."""
    by_id = rng.random() < 0.5
    email = member.email.upper() if rng.random() < 0.1 else member.email
    return (None, member.contact_id) if by_id else (email, None)


def activities(made: Account, rng: random.Random, count: int, *, bad: int = 3, unknown: int = 2) -> File:
    """`count` good rows, among them the same text at other times and the same time with other texts."""
    file, people = File("activities", ["email", "contact_id", "description", "datetime"]), addressed(made)
    used: set[tuple[int, dt.datetime, str]] = set()
    while len(used) < count:
        member, said, local = rng.choice(people), _text(rng, len(used) // 3), _moment(rng)
        if (member.contact_id, local, meant(said)) not in used:
            used.add((member.contact_id, local, meant(said)))
            file.activities[member.contact_id, local, meant(said)] += 1
            file.add(*_who(rng, member), said, _written(rng, made, local))
    one = people[0].email
    wrong = [
        ("not an address", None, "text", "2026-03-01 10:00", "an address"),
        (one, None, "", "2026-03-01 10:00", "an empty description"),
        (one, None, "text", "yesterday", "a date"),
        (one, None, "text", "2026-02-30 10:00", "a date"),
        (None, None, "text", "2026-03-01 10:00", "nobody is named"),
        (None, "12x", "text", "2026-03-01 10:00", "an id"),
        (one, None, "text", None, "no date"),
    ]
    for *cells, reason in rng.sample(wrong, _bearable(file, bad)):
        file.add(*cells, bad=str(reason))
    for number in range(unknown):
        file.add(f"nobody.{number}@example.com", None, "text", "2026-03-01 10:00", is_unknown=True)
    return file


def _moment(rng: random.Random) -> dt.datetime:
    """A wall-clock time that every zone has exactly once, mostly whole minutes; few days, so that times
    collide."""
    day = dt.datetime(2026, rng.choice([1, 6, 7]), rng.randint(10, 25))
    return day.replace(
        hour=rng.randint(6, 20), minute=rng.choice([0, 15, 37]), second=rng.choice([0, 0, 0, 42])
    )


def _written(rng: random.Random, made: Account, local: dt.datetime) -> str:
    """The time as people write it: local in several forms, or with an offset."""
    there = local.replace(tzinfo=made.zone)
    forms = [
        local.strftime("%Y-%m-%d %H:%M:%S"),
        local.strftime("%Y-%m-%dT%H:%M:%S"),
        there.isoformat(),
        there.astimezone(dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        there.astimezone(dt.timezone(dt.timedelta(hours=5, minutes=45))).isoformat(sep=" "),
    ]
    if not local.second:
        forms += [
            local.strftime("%Y-%m-%d %I:%M %p"),
            local.strftime("%Y-%m-%d %H:%M"),
        ]
        if local.day > 12:  # or else nobody knows which is the month
            forms.append(local.strftime("%m/%d/%Y %H:%M"))
    return rng.choice(forms)


def contacts(made: Account, rng: random.Random, count: int, *, bad: int = 3) -> File:
    """New and known addresses in one or two lists, a status, and a custom field of the first list that has
    any."""
    lists = [each for each in made.lists if each.labels]
    field_id = next(iter(lists[0].labels))
    file = File("contacts", ["email", "list_id", "status", field_id])
    known = [member for member in addressed(made) if member.email.isascii()]
    for number in range(count):
        member = rng.choice(known) if rng.random() < 0.6 else None
        email = member.email if member else f"new.{number}.{rng.randint(0, 9)}@example.com"
        chosen = [lists[0]] + ([lists[1]] if rng.random() < 0.3 and len(lists) > 1 else [])
        if any((each.list_id, email.lower()) in file.contacts for each in made.lists):
            continue
        # A field belongs to one list; an empty cell leaves what is there.
        status, value = (
            rng.choice(["Active", "Disactive", "active"]),
            None if len(chosen) > 1 else _text(rng, number),
        )
        for each in chosen:
            # Whoever is there and not active is not made so by a file.
            is_there = any(
                one.list_id == each.list_id and one.email.lower() == email.lower() for one in made.members
            )
            wanted = 2 if status == "Disactive" else None if is_there else 1
            file.contacts[each.list_id, email.lower()] = (wanted, {field_id: meant(value)} if value else {})
        file.add(email, ",".join(str(each.list_id) for each in chosen), status, value)
    one, first = "someone.else@example.com", str(lists[0].list_id)
    wrong = [
        ("not an address", first, "Active", "x", "an address"),
        (one, "99999999", "Active", "x", "a list"),
        (one, first, "sleeping", "x", "a status"),
        (None, first, "Active", "x", "no address"),
        (one, None, "Active", "x", "no list"),
    ]
    for *cells, reason in rng.sample(wrong, _bearable(file, bad)):
        file.add(*cells, bad=str(reason))
    return file


def tags(made: Account, rng: random.Random, count: int, *, bad: int = 3, unknown: int = 2) -> File:
    """Several per row or one; what a contact is given in one row is not taken from it in another."""
    file, people = File("tags", ["email", "contact_id", "tag", "action"]), addressed(made)
    names = ["vip", "Spring 2026", "größer", "=cmd", "it's", 'so "called"', "👍", "a/b", "100%", "-", "007"]
    for _ in range(count):
        member, wanted = rng.choice(people), file.tags
        free = [name for name in names if name not in wanted.get(member.contact_id, {})]
        if not free:
            continue
        chosen, action = (
            rng.sample(free, min(len(free), rng.choice([1, 1, 2]))),
            rng.choice(["add", "add", "remove"]),
        )
        wanted.setdefault(member.contact_id, {}).update(dict.fromkeys(chosen, action == "add"))
        file.add(*_who(rng, member), ",".join(chosen), action)
    one = people[0].email
    wrong = [
        ("not an address", None, "vip", "add", "an address"),
        (one, None, "", "add", "no tag"),
        (one, None, "vip2", "toggle", "an action"),
        (None, None, "vip", "add", "nobody is named"),
    ]
    for *cells, reason in rng.sample(wrong, _bearable(file, bad)):
        file.add(*cells, bad=str(reason))
    for number in range(unknown):
        file.add(f"nobody.{number}@example.com", None, "vip", "add", is_unknown=True)
    return file
