"""What a sheet shows is what the service holds once it was pushed, and what is read back confirms it: files as
people have them, planned, sent and confirmed."""

import datetime as dt
import io
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from home.settings import Settings
from tests.fixtures import Command
from tests.pipelines.sandboxes import Sandbox
from tests.pipelines.tables import query
from tests.write_back.input.test_files import SURROUNDINGS
from tests.write_back.input.test_number_formats import DATES, NUMBERS
from tests.write_back.input.test_values import TAGS
from tests.write_back.input.test_workbook import book
from write_back.account_state import load_known

#: How far each kind can be confirmed: no operation reads tags.
CONFIRMED = {"contacts": "verified", "tags": "applied", "activities": "verified"}
LIST, FIRST, LAST = 1801, "9100", "9101"
#: Two contacts of the account, each on one list, in whose place a file names its people.
ONE, TWO = "one", "two"
#: Of whom the service holds what: values by field, tags, or entries of the timeline.
Seen = Mapping[str, Any]


class Case(NamedTuple):
    """`content`: the file from the addresses of both; `rejected`: its rows that cannot be sent."""

    name: str
    kind: str
    file: str
    content: Callable[[str, str], bytes]
    seen: Seen
    rejected: tuple[int, ...] = ()


def text(*lines: str) -> Callable[[str, str], bytes]:
    return lambda one, two: "\n".join(lines).replace("{1}", one).replace("{2}", two).encode()


def parquet(**columns: pa.Array) -> Callable[[str, str], bytes]:
    def content(one: str, two: str) -> bytes:
        pq.write_table(pa.table(columns), stream := io.BytesIO())
        return stream.getvalue()

    return content


def new(number: int) -> str:
    return f"new{number}@example.com"


#: Forms of the reader's own system, as a workbook keeps them.
_OWN_FORMS = ("mm-dd-yy", "m/d/yy h:mm")


def formats() -> Case:
    """A contact for each format of a number and of a date."""
    shown = [each for each in NUMBERS + DATES if each[2] and each[1] not in _OWN_FORMS]
    table = [
        ("email", "list_id", "First name"),
        *((new(row), LIST, each[0]) for row, each in enumerate(shown, 2)),
    ]
    codes = {f"C{row}": code for row, (_, code, _) in enumerate(shown, 2)}
    seen = {new(row): {FIRST: text} for row, (_, _, text) in enumerate(shown, 2)}
    return Case("formats", "contacts", "formats.xlsx", lambda one, two: book(*table, formats=codes), seen)


def tagged(cell: str, wanted: str, number: int) -> Case:
    """One cell of tags, as a spreadsheet writes it into a CSV file."""
    line = f'{{1}},"{cell.replace(chr(34), chr(34) * 2)}"'
    return Case(
        f"tags {number}", "tags", "tags.csv", text("email,tag", line), {ONE: sorted(wanted.split(","))}
    )


_ZONED = dt.datetime(2026, 11, 20, 14, tzinfo=dt.UTC)
CASES = [
    formats(),
    *(tagged(cell, wanted, number) for number, (cell, wanted) in enumerate(TAGS)),
    *(
        Case(f"surroundings {number}", "tags", "rows.csv", text(each.replace("a@b.co", "{1}")), {ONE: ["x", "y"]})
        for number, each in enumerate(SURROUNDINGS)
    ),
    Case("dash", "activities", "dash.csv", text("email,description,datetime", "{1},a,05-11-2026 14:00", "{2},b,11-25-2026 14:00"), {TWO: [("2026-11-25 14:00", "b")]}, (2,)),
    Case("times", "activities", "times.csv", text("email,description,datetime", "{1},a,2026/11/20", "{2},b,20.11.2026 14:30"), {ONE: [("2026-11-20 00:00", "a")], TWO: [("2026-11-20 14:30", "b")]}),
    Case("float32", "contacts", "f32.parquet", parquet(email=[new(2)], list_id=[LIST], **{"First name": pa.array([0.1], pa.float32()), "Last name": pa.array([16777.21], pa.float32())}), {new(2): {FIRST: "0.1", LAST: "16777.21"}}),
    Case("infinity", "contacts", "inf.parquet", parquet(email=[new(2), new(3)], list_id=[LIST] * 2, **{"First name": pa.array([253_402_300_800_000, 0], pa.timestamp("ms"))}), {new(3): {FIRST: "1970-01-01"}}, (1,)),
    Case("zoned", "contacts", "zoned.parquet", parquet(email=[new(2)], list_id=[LIST], **{"First name": pa.array([_ZONED], pa.timestamp("us", "UTC"))}), {new(2): {FIRST: "2026-11-20 14:00:00+00:00"}}),
    Case("filtered", "tags", "filtered.xlsx", lambda one, two: book(("email", "tag"), (one.upper(), "vip"), (two, "vip"), rows=[3]), {ONE: ["vip"]}),
    Case("line break", "activities", "breaks.xlsx", lambda one, two: book(("email", "description", "datetime"), (one, "Called back_x000D_\nwants a quote", "2026-11-20 14:00")), {ONE: [("2026-11-20 14:00", "Called back\nwants a quote")]}),
    Case("nothing", "contacts", "nulls.csv", text("email,list_id,First name,Last name", f"{new(2)},{LIST},NULL,\\N", f"{new(3)},{LIST},nan,N/A", f"{new(4)},{LIST},Ann,(null)"), {new(2): {}, new(3): {}, new(4): {FIRST: "Ann"}}),
    Case("junk", "contacts", "junk.csv", text("email,list_id,First name", f"'{new(2)},{LIST},a", f"mailto:{new(3)},{LIST},b", f"“{new(4)}”,{LIST},c", f"{new(5)},{LIST},4.917E+10", f"{new(6)},{LIST},d"), {new(6): {FIRST: "d"}}, (2, 3, 4, 5)),
    Case("comma", "tags", "comma.csv", text("email,tag", '{1},"""Portland, Oregon"""', "{2},vip"), {TWO: ["vip"]}, (2,)),
]  # fmt: skip


def held(service: Sandbox, home: Path, kind: str) -> dict[str, Any]:
    """What the service holds by now, by address."""
    zone = load_known(Settings(home), "main").zone
    found = {}
    for each in service.control("written")["contacts"].values():
        if kind == "activities":
            clocks = (dt.datetime.fromtimestamp(at, zone) for at, _ in each["activities"])
            entries = zip(clocks, each["activities"], strict=True)
            found[each["email"]] = [(f"{clock:%Y-%m-%d %H:%M}", said) for clock, (_, said) in entries]
        elif kind == "tags":
            found[each["email"]] = each["tags"]
        else:
            found[each["email"]] = {field: value for field, value in each["values"].items() if value}
    return found


@pytest.mark.attack
@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_what_is_seen_is_what_is_sent_held_and_confirmed(
    command: Command, service: Sandbox, home: Path, folder: Path, case: Case
) -> None:
    one, two = (
        email
        for (email,) in query(
            home,
            f"select email from source.contacts group by email having count(*) = 1 and any_value(list_id) = {LIST} "
            "and any_value(status) = 'active' order by email limit 2",
        )
    )
    (folder / case.file).write_bytes(case.content(one, two))
    options = ("--from", case.file, "--verify", "all", "--reject-limit", "1", "--apply")
    ran = command("push", case.kind, *options, sandbox=service)
    assert ran.code == bool(case.rejected), ran.text
    people = {ONE: one, TWO: two}
    assert held(service, home, case.kind) == {people.get(who, who): what for who, what in case.seen.items()}
    states = query(home, "select distinct unnest(row_numbers), state from sync.writebacks order by 1")
    rejected = tuple(row for row, state in states if state == "rejected")
    assert rejected == case.rejected
    assert {state for _, state in states} - {"rejected"} == {CONFIRMED[case.kind]}
