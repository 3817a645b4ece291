"""Activities are recognized in every form of a timeline, counted, and sent exactly once."""

import datetime as dt
import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from marketing_api.contact_lookup import Timeline, TimelineEntry, read_timeline
from marketing_api.exchange import Response
from marketing_api.operations import contacts
from write_back.unknown_outcomes import Presence, SoughtActivity, look_for, match_entries

NOON = dt.datetime(2026, 1, 5, 12, 0, 30)
AT = int(NOON.replace(tzinfo=dt.UTC).timestamp())
SAID = "Called about the “Sunday” menu & a table for 12, no answer"


def timeline(*entries: dict[str, Any], total: int | None = None) -> Timeline:
    data = {
        "timeline": {
            "data": list(entries),
            "count": len(entries),
            "total": len(entries) if total is None else total,
        }
    }
    body = json.dumps({"response": {"header": {"status": "ok"}, "data": data}}).encode()
    return read_timeline(Response(1, "main", contacts.TIMELINE.bind(id=7), dt.datetime.now(dt.UTC), body))


def entry(text: str = SAID, **more: Any) -> dict[str, Any]:
    return {
        "key": "activity",
        "snippet": text,
        "timestamp": AT,
        "datetime": "2026-01-05 12:00 PM",
        "details": [],
    } | more


def presence(
    *entries: dict[str, Any], total: int | None = None, item: SoughtActivity | None = None
) -> Presence:
    wanted = item or SoughtActivity(1, SAID, NOON, AT)
    return look_for([wanted], timeline(*entries, total=total))[1]


DETAIL = [{"key": "description", "label": "Description", "value": SAID}]


@pytest.mark.parametrize(
    "shown",
    [
        entry(),
        entry(key="other"),
        entry(timestamp=str(AT)),
        entry("Activity added", details=DETAIL),
        entry("Activity added", details={"1": DETAIL[0]}),
        entry(SAID.replace("&", "&amp;").replace("“", "&ldquo;")),
        entry(SAID.replace("&", "&amp;amp;")),
        entry(f"  {SAID.replace(' ', '  ')}\n"),
        entry(f"<p>{SAID}</p>"),
        entry(SAID.replace("“", '"').replace("”", '"')),
        entry(f"Activity: {SAID}"),
        entry(SAID[:30] + "…"),
        entry(SAID[:40]),
        entry(timestamp=AT - 30),
        entry(timestamp=None),
        entry(timestamp=None, datetime="01/05/2026 12:00"),
        entry(timestamp=None, datetime="05-01-2026 12:00 PM"),
        entry(timestamp=None, datetime=str(AT - 30)),
        entry(timestamp="", datetime=AT),
        entry(timestamp=None, datetime="2026-01-05 12:00:30"),
        entry(timestamp=AT + 3600),  # the other reading of an ambiguous hour
        entry(timestamp=AT - 5 * 3600),
    ],
    ids=str,
)  # fmt: skip
def test_every_form_of_an_activity_is_recognized(shown: dict[str, Any]) -> None:
    assert (
        presence(entry("something else"), shown, entry(timestamp=AT + 86_400, datetime="2026-01-06 12:00 PM"))
        is Presence.THERE
    )


@pytest.mark.parametrize(
    "shown",
    [
        entry("Called"),
        entry("Called about the"),
        entry("another text entirely"),
        entry(timestamp=AT + 1, datetime="2026-01-05 12:00 PM"),
        entry(timestamp=AT + 60, datetime="2026-01-05 12:01 PM"),
        entry(timestamp=AT + 86_400, datetime="2026-01-06 12:00 PM"),
        entry(timestamp=None, datetime="N/A"),
        entry(timestamp=None, datetime="2026-01-05 12:00:31"),
        entry("", details=[{"key": "a", "value": None}]),
        {"unreadable": True},
    ],
    ids=str,
)
def test_another_entry_is_not_taken_for_it(shown: dict[str, Any]) -> None:
    assert presence(shown) is Presence.ABSENT


def test_a_word_is_not_found_inside_another_word() -> None:
    item = SoughtActivity(1, "Call", NOON, AT)
    assert presence(entry("Callback"), item=item) is Presence.ABSENT
    assert presence(entry("Call (by phone)"), item=item) is Presence.THERE


def test_what_the_service_cut_off_is_hidden_and_not_absent() -> None:
    newer = entry("x", timestamp=AT + 999, datetime="2026-01-05 12:20 PM")
    older = entry("x", timestamp=AT - 3601, datetime="2026-01-05 11:00 AM")
    same_minute = entry("x", timestamp=None, datetime="2026-01-05 12:00 PM")
    assert presence(newer, total=5) is Presence.HIDDEN
    assert presence(newer, older, total=5) is Presence.ABSENT
    assert presence(same_minute, total=5) is Presence.HIDDEN
    assert presence(newer) is Presence.ABSENT
    assert presence(total=5) is Presence.HIDDEN


def test_two_equal_activities_need_two_entries() -> None:
    items = [SoughtActivity(number, SAID, NOON, AT, is_done=number == 2) for number in (1, 2)]
    assert look_for(items, timeline(entry())) == {2: Presence.THERE, 1: Presence.ABSENT}
    assert look_for(items, timeline(entry(), entry())) == {2: Presence.THERE, 1: Presence.THERE}


def test_seconds_tell_two_activities_of_one_minute_apart() -> None:
    first, second = (
        SoughtActivity(1, SAID, NOON, AT),
        SoughtActivity(2, SAID, NOON + dt.timedelta(seconds=20), AT + 20),
    )
    shown = entry(timestamp=AT + 20)
    assert look_for([first, second], timeline(shown)) == {1: Presence.ABSENT, 2: Presence.THERE}


def test_what_is_done_has_its_entry_before_what_is_unknown() -> None:
    """Where only minutes are shown, the unknown one must not take the other's entry, however alike."""
    unknown, done = (
        SoughtActivity(1, SAID, NOON.replace(second=0), AT - 30),
        SoughtActivity(2, SAID, NOON, AT, is_done=True),
    )
    shown = timeline(entry(timestamp=None))
    assert look_for([unknown, done], shown) == {1: Presence.ABSENT, 2: Presence.THERE}


def test_what_was_done_just_now_takes_no_entry_that_only_resembles_it() -> None:
    """It may not show yet, and the entry may be the unknown one's own."""
    unknown, done = (
        SoughtActivity(1, "Call back", NOON, AT),
        SoughtActivity(2, "Call", NOON, AT, is_done=True, is_settled=False),
    )
    assert look_for([unknown, done], timeline(entry("Call back")))[1] is Presence.THERE
    assert (
        look_for([unknown, replace(done, is_settled=True)], timeline(entry("Call back")))[1]
        is Presence.ABSENT
    )


def test_the_surer_likeness_takes_the_entry() -> None:
    short, long = SoughtActivity(1, "Call", NOON, AT), SoughtActivity(2, "Call back", NOON, AT)
    assert look_for([short, long], timeline(entry("Call back"))) == {1: Presence.ABSENT, 2: Presence.THERE}


TEXTS = ("Call", "Call back", "Call &amp; mail", SAID)
FORMS = ("snippet", "detail", "escaped", "minutes", "prefixed")
#: What happens to one request: (it takes effect, an answer comes).
FATES = st.sampled_from([(True, True), (True, False), (False, False)])


def _as_shown(item: SoughtActivity, form: str) -> TimelineEntry:
    text = {"escaped": item.description.replace("&", "&amp;"), "prefixed": f"Note: {item.description}"}.get(
        form, item.description
    )
    texts = ("Activity added", text) if form == "detail" else (text,)
    if form == "minutes":
        return TimelineEntry(texts, None, item.local.replace(second=0))
    return TimelineEntry(texts, item.at, item.local.replace(second=0))


@given(
    st.lists(
        st.tuples(st.sampled_from(TEXTS), st.sampled_from([0, 10, 20, 60, 3600])), min_size=1, max_size=6
    ),
    st.sampled_from(FORMS),
    st.data(),
)
def test_for_any_losses_every_activity_is_sent_exactly_once(
    rows: list[tuple[str, int]], form: str, data: st.DataObject
) -> None:
    """The sending in small: an unknown one is looked for when the queue has settled, and resent if absent."""
    wanted = [
        SoughtActivity(number, text, NOON + dt.timedelta(seconds=plus), AT + plus)
        for number, (text, plus) in enumerate(rows)
    ]
    service: list[SoughtActivity] = []
    state: dict[int, str] = dict.fromkeys(range(len(wanted)), "planned")
    for _ in range(60):
        for number, item in enumerate(wanted):
            alike = [
                other
                for other, one in enumerate(wanted)
                if (one.description, one.at // 60) == (item.description, item.at // 60)
            ]
            if state[number] != "planned" or any(
                state[other] == "unknown" for other in alike
            ):  # one at a time
                continue
            has_effect, is_answered = data.draw(FATES)
            service += [item] * has_effect
            state[number] = "applied" if is_answered else "unknown"
        ours = [
            replace(item, is_done=state[number] == "applied", is_settled=data.draw(st.booleans()))
            for number, item in enumerate(wanted)
            if state[number] != "planned"
        ]
        seen = look_for(
            ours, Timeline(tuple(_as_shown(item, form) for item in data.draw(st.permutations(service))))
        )
        for number in [number for number in state if state[number] == "unknown"]:
            state[number] = "applied" if seen[number] is Presence.THERE else "planned"
        if set(state.values()) == {"applied"}:
            break
    else:
        return  # unlucky to the end: nothing is claimed about it
    assert Counter((item.description, item.at) for item in service) == Counter(
        (item.description, item.at) for item in wanted
    )


@given(
    st.lists(st.dictionaries(st.integers(0, 4), st.integers(0, 9), max_size=4), max_size=4),
    st.sets(st.integers(0, 3)),
)
def test_as_many_as_can_be_have_an_entry(rows: list[dict[int, int]], first: set[int]) -> None:
    """One that arrived and is left without would be sent twice."""
    found = match_entries(dict(enumerate(rows)), first)
    assert len(set(found.values())) == len(found)
    assert all(entry in rows[item] for item, entry in found.items())
    assert (len(first & found.keys()), len(found)) == max(_sizes(rows, first, 0, frozenset()))


def _sizes(
    rows: list[dict[int, int]], first: set[int], at: int, gone: frozenset[int]
) -> Iterator[tuple[int, int]]:
    """How many of `first`, and how many in all, every assignment has."""
    if at == len(rows):
        yield 0, 0
        return
    for place in [None, *(place for place in rows[at] if place not in gone)]:
        is_placed = place is not None
        for preferred, size in _sizes(rows, first, at + 1, gone | {place} if place is not None else gone):
            yield preferred + (is_placed and at in first), size + is_placed
