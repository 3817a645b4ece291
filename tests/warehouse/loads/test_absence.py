"""A row counts as gone only where a whole, well-formed answer proves it: nothing else marks it deleted."""

import copy
import datetime as dt
import itertools
import random
import re
from collections.abc import Iterable, Iterator
from typing import Any

import pytest

from marketing_api.exchange import Response, id_at
from marketing_api.operation import Operation
from marketing_api.operations import ALL, account, campaigns, contacts, lists, reputation
from marketing_api.validation import find_flaw
from tests.depth import DEEP
from tests.marketing_api.responses import enveloped, of_body
from tests.marketing_api.samples import SAMPLES
from tests.warehouse.answering import START, Home
from tests.warehouse.in_memory import Tables, answer
from warehouse import tables
from warehouse.schema import SCHEMA_VERSION
from warehouse.sql import fetch_rows
from warehouse.tables import TABLES, Table

Place = tuple[Any, ...]
ALL_DAYS = {"from_on": "2010-01-01", "to_on": "2030-12-31"}
#: No coupon, or no post any more, is an answer like others: of these, a few may always go.
_MAY_BE_EMPTY = ("emailmarketing/getcoupon", "socialmedia/getpost")
#: Names that are put into the text as they are, for members that stand twice.
_TWICE = re.compile(r"@@")


def places(value: Any, place: Place = ()) -> Iterator[tuple[Place, Any]]:
    """Where lists and objects stand in a payload."""
    if isinstance(value, dict | list) and value:
        if place:
            yield place, value
        for name, part in value.items() if isinstance(value, dict) else enumerate(value):
            yield from places(part, (*place, name))


def changed(sample: Any, place: Place, part: Any) -> Any:
    found = copy.deepcopy(sample)
    around = found
    for name in place[:-1]:
        around = around[name]
    around[place[-1]] = part
    return found


def beside(sample: Any, place: Place, name: str, part: Any) -> Any:
    """The sample with one more member of that name behind the one in that place."""
    return changed(sample, (*place[:-1], f"@@{name}"), part)


def without(value: Any, *names: str) -> Any:
    """No entry has one of these members."""
    if isinstance(value, dict):
        return {name: without(part, *names) for name, part in value.items() if name not in names}
    return [without(part, *names) for part in value] if isinstance(value, list) else value


def mutants(sample: Any) -> Iterator[tuple[str, Any]]:
    """What a broken service could make of a whole answer, none of which proves that a row is gone."""
    for place, _part in places(sample):
        for wrong in (None, "", 7, True, "gone", float("nan"), float("inf")):
            yield f"{place}: {wrong!r}", changed(sample, place, wrong)
        if isinstance(place[-1], str):
            for name, wrong in itertools.product((place[-1], place[-1].swapcase()), ([], {}, None)):
                yield f"{place}: {name} = {wrong!r} behind it", beside(sample, place, name, wrong)
        if len(place) == 1 or place[-1] == "items":
            yield f"{place}: empty list", changed(sample, place, [])
            yield f"{place}: empty object", changed(sample, place, {})
    for name in ("id", "url", "periode"):
        yield f"no entry has {name}", without(sample, name)


def text(data: Any) -> bytes:
    return _TWICE.sub("", enveloped(data).decode()).encode()


def filled(operation: Operation) -> list[Table]:
    return [table for table in TABLES.values() if table.record in operation.records]


def states(memory: Tables, many: list[Table], *, deleted: bool) -> int:
    return sum(
        memory.rows(
            f"select count(*) from {table.qualified} where _deleted_at is {'not ' if deleted else ''}null"
        )[0][0]
        for table in many
        if table.marks_deleted
    )


@pytest.mark.parametrize(
    "name", [name for name in SAMPLES if any(table.marks_deleted for table in filled(ALL[name]))]
)
@pytest.mark.deep
@pytest.mark.slow
def test_nothing_is_marked_as_deleted_unless_an_answer_proves_it(memory: Tables, name: str) -> None:
    sample, params = SAMPLES[name]
    many = filled(ALL[name])
    seconds = itertools.count()

    def load(data: Any) -> bool:
        """Whether it was loaded: refused answers are not."""
        made = of_body(ALL[name], text(data), **params)
        at = made.requested_at + dt.timedelta(seconds=next(seconds))
        if find_flaw(made):
            return False
        memory.load([Response(1, "main", made.call, at, made.body)], *many, scope=ALL_DAYS, shrink_limit=0.5)
        return True

    memory.fresh()
    assert load(sample)
    live = states(memory, many, deleted=False)
    is_loaded = []
    for what, mutant in _some(mutants(sample), name):
        is_loaded.append(load(mutant))
        assert states(memory, many, deleted=True) == 0, what
    assert not all(is_loaded)
    assert load(sample)
    assert states(memory, many, deleted=False) >= live


def _some(of: Iterable[tuple[str, Any]], name: str) -> list[tuple[str, Any]]:
    """As many as there is time for; all of them at night."""
    found = [(what, mutant) for what, mutant in of if "empty" not in what or name not in _MAY_BE_EMPTY]
    return found if DEEP else random.Random(name).sample(found, min(12, len(found)))


def _reviews(count: int, served: int, minutes: float) -> Response:
    items = [{"id": number, "date": f"03/{number % 9 + 1:02}/2026"} for number in range(served)]
    return answer(reputation.DIRECT, {"reviews": {"count": count, "items": items}}, minutes, filter="date")


def _live(memory: Tables, table: Table) -> int:
    return int(memory.rows(f"select count(*) from {table.qualified} where _deleted_at is null")[0][0])


@pytest.mark.parametrize(
    ("count", "served", "limit", "left"),
    [
        pytest.param(80, 48, 0.5, 80, id="fewer than it counts"),
        pytest.param(48, 48, 0.5, 48, id="as many as it counts"),
        pytest.param(39, 39, 0.5, 80, id="more gone than may be"),
        pytest.param(39, 39, None, 39, id="accepted"),
        pytest.param(0, 0, 0.5, 80, id="nothing left"),
    ],
)
def test_a_range_loses_what_its_answer_proves(
    memory: Tables, count: int, served: int, limit: float | None, left: int
) -> None:
    memory.fresh().load([_reviews(80, 80, 0)], tables.DIRECT_REVIEWS, scope=ALL_DAYS)
    memory.load([_reviews(count, served, 1)], tables.DIRECT_REVIEWS, scope=ALL_DAYS, shrink_limit=limit)
    assert _live(memory, tables.DIRECT_REVIEWS) == left
    ((is_complete, reason),) = memory.rows("select is_complete, reason from sync.coverage")
    assert is_complete == (left == served)
    assert (reason is None) == is_complete
    memory.load([_reviews(80, 80, 2)], tables.DIRECT_REVIEWS, scope=ALL_DAYS, shrink_limit=0.5)
    assert _live(memory, tables.DIRECT_REVIEWS) == 80
    assert memory.rows("select is_complete, reason from sync.coverage") == [(True, None)]


def _coupons(email: str, *ids: int, minutes: float) -> Response:
    return answer(
        contacts.GETCOUPON, {"coupons": [{"id": id_, "email": email} for id_ in ids]}, minutes, email=email
    )


@pytest.mark.parametrize(
    ("people", "each", "emptied", "left"),
    [
        pytest.param(20, 1, 9, 11, id="a few"),
        pytest.param(20, 1, 11, 20, id="more than half of all"),
        pytest.param(30, 1, 12, 18, id="less than half of all"),
        pytest.param(9, 12, 1, 108, id="one with many"),
        pytest.param(1, 3, 1, 0, id="one with few"),
    ],
)
def test_parts_of_entries_are_guarded_one_by_one_and_together(
    memory: Tables, people: int, each: int, emptied: int, left: int
) -> None:
    many = {f"c{number}@x.com": range(number * each, (number + 1) * each) for number in range(people)}
    memory.fresh().load([_coupons(email, *ids, minutes=0) for email, ids in many.items()], tables.COUPONS)
    again = [
        _coupons(email, *([] if index < emptied else ids), minutes=1)
        for index, (email, ids) in enumerate(many.items())
    ]
    memory.load(again, tables.COUPONS, shrink_limit=0.5)
    assert _live(memory, tables.COUPONS) == left


def _statistics(minutes: float, **clicks: Any) -> Response:
    return answer(
        campaigns.STATS,
        {"campaign": {"stats": {"open": "3 (10%)"}, **clicks}},
        minutes,
        id=1,
        type="standard",
    )


@pytest.mark.parametrize(
    "clicks",
    [
        None,
        "",
        [{"clickers": ["ann@x.com(1 click)"]}],
        [{"url": "u", "clickers": None}],
        [{"url": "u"}, "junk"],
    ],
    ids=str,
)
def test_what_is_rejected_or_not_told_protects_what_hangs_on_it(home: Home, clicks: Any) -> None:
    many = (tables.CAMPAIGN_STATS, tables.CAMPAIGN_LINKS, tables.CAMPAIGN_CLICKERS)
    people = [f"{name}@x.com(2 clicks)" for name in ("ann", "bob")]
    for minutes, part in enumerate(([{"url": "u", "clickers": people}], clicks)):
        data = {"campaign": {"stats": {"open": "3 (10%)"}, "clicks": part}}
        report = home.load(
            [home.answer(campaigns.STATS, data, minutes, id=1, type="standard")], *many, shrink_limit=0.5
        )
    assert home.values(tables.CAMPAIGN_CLICKERS, "email", "_deleted_at is null") == ["ann@x.com", "bob@x.com"]
    assert "2 rows were not listed" in report.refused["campaign_clickers"]
    assert "@" not in str(report.refused)
    assert home.values("sync.coverage", "is_complete", "table_name = 'campaign_clickers'") == [False]


def _listed(home: Home, minutes: float, *list_ids: int) -> None:
    items = [{"id": number, "name": "L"} for number in list_ids]
    home.load(
        [home.answer(lists.GETLISTS, {"lists": {"count": len(items), "items": items}}, minutes)],
        tables.LISTS,
        tables.LIST_FIELDS,
    )


def _members(home: Home, minutes: float, list_id: int, *names: str, is_complete: bool = True) -> None:
    items = [{"id": list_id * 100 + index, "email": f"{name}@X.com"} for index, name in enumerate(names)]
    page = home.answer(contacts.GETCONTACTS, {"contacts": {"items": items}}, minutes, listid=list_id)
    home.load([page], tables.CONTACTS, is_complete=is_complete)


def _with_coupons(home: Home) -> None:
    _listed(home, 0, 1, 2)
    _members(home, 1, 1, "ann", "bob")
    _members(home, 1, 2, "bob", "cyd")
    home.load(
        [
            home.answer(
                contacts.GETCOUPON,
                {"coupons": [{"id": number, "email": f"{name}@x.com"}]},
                2,
                email=f"{name}@x.com",
            )
            for number, name in enumerate(("ann", "bob", "cyd"))
        ],
        tables.COUPONS,
    )


def _night(home: Home, minutes: float) -> list[str]:
    """The addresses with coupons after a night in which nobody's were due."""
    moment = START + dt.timedelta(minutes=minutes)
    home.load([], tables.COUPONS, logged_at=moment, place=id_at(moment))
    return [email[:3] for email in home.values(tables.COUPONS, "email", "_deleted_at is null")]


@pytest.mark.slow
def test_coupons_go_with_the_last_contact_of_their_address_and_are_asked_for_when_one_comes_back(
    home: Home,
) -> None:
    _with_coupons(home)
    assert _night(home, 3) == ["ann", "bob", "cyd"]
    _members(home, 4, 1)
    assert _night(home, 5) == ["bob", "cyd"], "bob is in another list"
    _listed(home, 6, 1)
    assert _night(home, 7) == [], "the list of bob and cyd is gone"
    _members(home, 8, 1, "ann")
    candidates = home.warehouse.coupon_candidates("main").to_pylist()
    assert [(row["email"], row["asked_at"]) for row in candidates] == [("ann@X.com", None)], (
        "like one that never was asked"
    )
    home.load(
        [
            home.answer(
                contacts.GETCOUPON, {"coupons": [{"id": 0, "email": "ann@x.com"}]}, 9, email="ann@x.com"
            )
        ],
        tables.COUPONS,
    )
    assert _night(home, 10) == ["ann"]


def test_coupons_go_when_no_list_has_their_address_any_more(home: Home) -> None:
    _with_coupons(home)
    _members(home, 3, 2, "bob")
    assert _night(home, 4) == ["ann", "bob"]


@pytest.mark.parametrize("is_known", [True, False])
def test_a_list_that_is_not_read_completely_protects_coupons(home: Home, is_known: bool) -> None:
    _with_coupons(home)
    if is_known:
        _members(home, 3, 2, "cyd", is_complete=False)
    else:
        _listed(home, 3, 1, 2, 3)
    _members(home, 4, 1, "bob")
    assert _night(home, 5) == ["ann", "bob", "cyd"]


def test_a_home_of_the_version_before_opens_and_works(home: Home) -> None:
    home.load(
        [home.answer(reputation.DIRECT, {"reviews": {"items": [{"id": 1, "date": "03/01/2026"}]}})],
        tables.DIRECT_REVIEWS,
    )
    with home.warehouse.open_for_writing() as connection:
        fetch_rows(connection, "alter table source.direct_reviews drop column _deleted_at")
        fetch_rows(connection, "update sync.meta set value = 'of the version before' where name = 'tables'")
    data = {"reviews": {"items": [{"id": 2, "date": "03/01/2026"}]}}
    home.load([home.answer(reputation.DIRECT, data, 1)], tables.DIRECT_REVIEWS, scope=ALL_DAYS)
    assert home.values(tables.DIRECT_REVIEWS, "review_id", "_deleted_at is null") == [2]
    assert home.values("sync.meta", "value", "name = 'schema_version'") == [str(SCHEMA_VERSION)]


@pytest.mark.parametrize("payload", [{}, []], ids=str)
def test_an_account_is_never_without_its_business(memory: Tables, payload: Any) -> None:
    memory.fresh().load(
        [answer(account.ME, {"business": {"id": 7, "businessName": "Corner"}}, 0)], tables.BUSINESS
    )
    memory.load([answer(account.ME, {"business": payload}, 1)], tables.BUSINESS)
    assert _live(memory, tables.BUSINESS) == 1


@pytest.mark.parametrize(
    "fields",
    [{"audiences": {"count": 1, "items": [{"id": 6, "name": "Opened"}]}}, {"12s": "City"}, [7]],
    ids=str,
)
def test_fields_of_a_list_that_are_none_remove_none(memory: Tables, fields: Any) -> None:
    memory.fresh()
    for minutes, part in enumerate(({"12": "City", "13": "Birthday"}, fields)):
        memory.load(
            [answer(lists.GETLIST, {"list": {"id": 5, "fields": part}}, minutes, id=5)],
            tables.LISTS,
            tables.LIST_FIELDS,
        )
    assert {"12", "13"} <= {
        row[0] for row in memory.rows("select field_id from source.list_fields where _deleted_at is null")
    }
