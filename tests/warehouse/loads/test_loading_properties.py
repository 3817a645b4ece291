"""For any sequence of loads: twice equals once, pages come in any order, nothing is lost."""

import json
from collections import Counter
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from marketing_api.exchange import Response
from marketing_api.operations import contacts, goals, reputation
from tests.depth import examples
from tests.warehouse.answering import START
from tests.warehouse.in_memory import Tables, answer
from tests.warehouse.timelines import TABLES as TIMELINES
from tests.warehouse.timelines import event
from warehouse import tables
from warehouse.tables import Table

EXAMPLES = settings(max_examples=examples(20))
FEW = settings(EXAMPLES, max_examples=examples(8))


def page(entries: dict[int, int] | list[tuple[int, int]], minutes: float) -> Response:
    """Contacts by number, each with a status code."""
    pairs = entries.items() if isinstance(entries, dict) else entries
    items = [{"id": number, "email": f"c{number}@x.com", "status": status} for number, status in pairs]
    return answer(contacts.GETCONTACTS, {"contacts": {"items": items}}, minutes, listid=12)


def timeline(seconds: Sequence[tuple[int, int]], cut: bool, minutes: float) -> Response:
    events = [event(second, str(opened)) for second, opened in seconds]
    data = {"id": 1, "timeline": {"data": events, "count": len(events), "total": len(events) + cut}}
    return answer(contacts.TIMELINE, data, minutes, id=1)


listings = st.lists(st.dictionaries(st.integers(1, 6), st.integers(0, 3)), min_size=1, max_size=4)
timelines = st.lists(
    st.tuples(st.lists(st.tuples(st.integers(1, 3), st.integers(0, 2)), max_size=5), st.booleans()),
    min_size=1,
    max_size=4,
)


@EXAMPLES
@given(nights=listings)
def test_what_exists_is_what_was_listed_last(memory: Tables, nights: list[dict[int, int]]) -> None:
    tables_ = memory.fresh()
    for minutes, listed in enumerate(nights):
        tables_.load([page(listed, minutes)], tables.CONTACTS)
    live = dict(tables_.rows("select contact_id, status_code from source.contacts where _deleted_at is null"))
    assert live == nights[-1]
    ever = {number for listed in nights for number in listed}
    assert {number for (number,) in tables_.rows("select contact_id from source.contacts")} == ever


@EXAMPLES
@given(nights=listings)
def test_rows_say_when_they_came_changed_and_went(memory: Tables, nights: list[dict[int, int]]) -> None:
    tables_ = memory.fresh()
    expected: dict[int, tuple[int, int, int | None]] = {}
    stored: dict[int, int | None] = {}
    for minute, listed in enumerate(nights):
        tables_.load([page(listed, minute)], tables.CONTACTS)
        for number in {*stored, *listed}:
            now, before = listed.get(number), stored.get(number)
            first, changed, _ = expected.get(number, (minute, minute, None))
            if now != before:
                changed = minute
            gone = None if number in listed else expected[number][2] if before is None else minute
            expected[number] = (first, changed, gone)
            stored[number] = now
    minutes = ", ".join(
        f"date_diff('minute', timestamptz '{START.isoformat()}', {name})"
        for name in ("_first_seen_at", "_changed_at", "_deleted_at")
    )
    assert {
        number: tuple(times)
        for number, *times in tables_.rows(f"select contact_id, {minutes} from source.contacts")
    } == expected


@EXAMPLES
@given(listed=st.dictionaries(st.integers(1, 9), st.integers(0, 3), min_size=1), data=st.data())
@pytest.mark.slow
def test_pages_may_come_in_any_order_and_cut(
    memory: Tables, listed: dict[int, int], data: st.DataObject
) -> None:
    before = dict.fromkeys(range(1, 5), 1)
    whole = memory.fresh()
    whole.load([page(before, 0)], tables.CONTACTS)
    whole.load([page(listed, 1)], tables.CONTACTS)
    expected = whole.contents()

    entries = data.draw(st.permutations(list(listed.items())))
    size = data.draw(st.integers(1, len(entries)))
    cut = memory.fresh()
    cut.load([page(before, 0)], tables.CONTACTS)
    cut.load(
        [page(entries[start : start + size], 1) for start in range(0, len(entries), size)], tables.CONTACTS
    )
    assert cut.contents() == expected


@FEW
@given(nights=timelines, listed=listings)
@pytest.mark.slow
def test_loading_twice_equals_loading_once(
    memory: Tables, nights: list[tuple[list[tuple[int, int]], bool]], listed: list[dict[int, int]]
) -> None:
    tables_ = memory.fresh()
    loads: list[tuple[list[Response], tuple[Table, ...]]] = [
        ([timeline(events, cut, minutes)], TIMELINES) for minutes, (events, cut) in enumerate(nights)
    ]
    loads += [([page(entries, minutes)], (tables.CONTACTS,)) for minutes, entries in enumerate(listed)]
    for answers, filled in loads:
        tables_.load(answers, *filled)
        once = tables_.contents()
        tables_.load(answers, *filled)
        assert tables_.contents() == once


@FEW
@given(nights=timelines, listed=listings)
@pytest.mark.slow
def test_replaying_what_was_loaded_gives_the_same_tables(
    memory: Tables, nights: list[tuple[list[tuple[int, int]], bool]], listed: list[dict[int, int]]
) -> None:
    loads: list[tuple[list[Response], tuple[Table, ...]]] = [
        ([timeline(events, cut, minutes)], TIMELINES) for minutes, (events, cut) in enumerate(nights)
    ]
    loads += [([page(entries, minutes)], (tables.CONTACTS,)) for minutes, entries in enumerate(listed)]
    results = []
    for _ in range(2):
        tables_ = memory.fresh()
        for answers, filled in loads:
            tables_.load(answers, *filled)
        results.append(tables_.contents())
    assert results[0] == results[1]


@EXAMPLES
@given(nights=timelines)
def test_no_event_is_ever_lost(memory: Tables, nights: list[tuple[list[tuple[int, int]], bool]]) -> None:
    tables_ = memory.fresh()
    most: Counter[int] = Counter()
    for minutes, (events, cut) in enumerate(nights):
        before = set(tables_.rows("select event_key from source.timeline_events"))
        tables_.load([timeline(events, cut, minutes)], *TIMELINES)
        assert before <= set(tables_.rows("select event_key from source.timeline_events"))
        most |= Counter(second for second, _ in events)
        stored = Counter(
            second
            for (second,) in tables_.rows(
                "select epoch(occurred_at)::bigint - 1700000000 from source.timeline_events"
            )
        )
        assert most <= stored
        seen = set(
            tables_.rows(
                "select epoch(occurred_at)::bigint - 1700000000, (details->0->>'value')::int from "
                "source.timeline_events"
            )
        )
        assert set(events) <= seen
    assert tables_.rows("select event_key from source.timeline_events group by all having count(*) > 1") == []


windows = st.lists(
    st.tuples(
        st.dictionaries(st.integers(1, 6), st.integers(1, 9)), st.tuples(st.integers(1, 9), st.integers(1, 9))
    ),
    min_size=1,
    max_size=4,
)


@EXAMPLES
@given(nights=windows)
def test_a_range_holds_what_was_received_last_and_other_days_keep_theirs(
    memory: Tables, nights: list[tuple[dict[int, int], tuple[int, int]]]
) -> None:
    tables_ = memory.fresh()
    expected: dict[int, int] = {}
    for minutes, (reviews, ends) in enumerate(nights):
        first, last = sorted(ends)
        items = [{"id": number, "date": f"03/0{day}/2026"} for number, day in reviews.items()]
        params = {"from_": f"2026-03-0{first}", "to": f"2026-03-0{last}"}
        scope = {"from_on": params["from_"], "to_on": params["to"]}
        reply = answer(reputation.DIRECT, {"reviews": {"items": items}}, minutes, filter="date", **params)
        tables_.load([reply], tables.DIRECT_REVIEWS, scope=scope)
        expected = {number: day for number, day in expected.items() if not first <= day <= last} | reviews
    stored = tables_.rows(
        "select review_id, day(reviewed_at) from source.direct_reviews where _deleted_at is null"
    )
    assert len(stored) == len(expected)
    assert dict(stored) == expected


parts = st.lists(
    st.tuples(st.sampled_from(["list", "show"]), st.dictionaries(st.sampled_from("abc"), st.integers(0, 2))),
    min_size=1,
    max_size=5,
)


@EXAMPLES
@given(answers=parts)
def test_of_each_column_the_last_answer_that_knows_it_counts(
    memory: Tables, answers: list[tuple[str, dict[str, int]]]
) -> None:
    names = {"a": "name", "b": "type", "c": "colour"}

    def reply(kind: str, known: dict[str, int]) -> Response:
        entry = {"id": 1, **{names[letter]: str(value) for letter, value in known.items()}}
        if kind == "list":
            return answer(goals.LISTS, {"goals": {"items": [entry]}}, 0)
        return answer(goals.SHOW, {"goal": entry}, 0, id=1)

    expected: dict[str, str] = {}
    for _, known in answers:
        expected |= {names[letter]: str(value) for letter, value in known.items()}
    together = memory.fresh()
    together.load([reply(kind, known) for kind, known in answers], tables.GOALS)
    one_by_one = [tuple(row) for row in together.rows("select name, type, extra from source.goals")]
    apart = memory.fresh()
    for kind, known in answers:
        apart.load([reply(kind, known)], tables.GOALS)
    assert apart.rows("select name, type, extra from source.goals") == one_by_one
    extra = (
        json.dumps({"colour": expected["colour"]}, separators=(",", ":")) if "colour" in expected else None
    )
    assert one_by_one == [(expected.get("name"), expected.get("type"), extra)]
