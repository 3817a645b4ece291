import copy
from typing import Any

import pytest

from marketing_api import parsing
from marketing_api.operations import contacts
from marketing_api.records.contacts import TimelineAutomation, TimelineEvent, TimelineVisit
from tests.marketing_api import samples
from tests.marketing_api.responses import records, response, utc

Timeline = dict[str, Any]


def events(timeline: Timeline) -> list[TimelineEvent]:
    return records(TimelineEvent, contacts.TIMELINE, timeline, id=1001)


def with_events(*entries: Any) -> Timeline:
    return {"id": 1001, "timeline": {"data": list(entries), "count": len(entries), "total": len(entries)}}


def test_events_prefer_the_timestamp() -> None:
    sent, automated = events(samples.TIMELINE)
    assert (sent.contact_id, sent.key, sent.snippet) == (1001, "email-campaign-sent", "Spring was sent")
    assert sent.occurred_at == utc("2013-11-04 16:33:00")
    assert sent.details == [{"key": "open-date", "label": "Opened", "value": "11/05/2013 08:00"}]
    assert automated.occurred_at == utc("2013-08-15 18:52:00")
    assert automated.details is None
    assert sent.extra is None


def test_visit_columns_come_from_its_utm_object() -> None:
    (visit,) = records(TimelineVisit, contacts.TIMELINE, samples.TIMELINE, id=1001)
    assert (visit.contact_id, visit.link, visit.utm_campaign, visit.utm_source) == (
        1001,
        "https://corner.example/menu",
        "spring",
        "mail",
    )
    assert (visit.utm_medium, visit.utm_term, visit.utm_content) == ("email", "", None)
    assert visit.visited_at == utc("2013-11-04 16:33:00")


def test_automation_details_need_no_label() -> None:
    (automation,) = records(TimelineAutomation, contacts.TIMELINE, samples.TIMELINE, id=1001)
    assert (automation.name, automation.type, automation.details) == (
        "Welcome",
        "sms",
        [{"key": "message", "value": 5}],
    )
    assert automation.triggered_at == utc("2013-11-04 16:33:00")


def test_details_that_change_later_do_not_change_the_key() -> None:
    opened: Timeline = copy.deepcopy(samples.TIMELINE)
    opened["timeline"]["data"][0]["details"].append({"key": "links-clicked", "label": "Links", "value": 2})
    assert [event.event_key for event in events(opened)] == [
        event.event_key for event in events(samples.TIMELINE)
    ]


def test_events_at_different_times_have_different_keys() -> None:
    first, second = events(
        with_events(
            {"key": "a", "snippet": "b", "timestamp": 1383582780},
            {"key": "a", "snippet": "b", "timestamp": 1383582781},
        )
    )
    assert first.event_key != second.event_key


def test_timestamps_as_text_and_number_are_the_same_event() -> None:
    as_number = events(with_events({"key": "a", "timestamp": 1383582780, "datetime": "x"}))
    as_text = events(with_events({"key": "a", "timestamp": "1383582780", "datetime": "y"}))
    assert as_number[0].event_key == as_text[0].event_key


def test_true_duplicates_are_two_events() -> None:
    entry = {"key": "a", "snippet": "b", "timestamp": 1383582780}
    assert len({event.event_key for event in events(with_events(entry, entry))}) == 2


def test_parts_that_were_not_included_are_no_rows() -> None:
    only = {name: part for name, part in samples.TIMELINE.items() if name not in ("utm", "automated")}
    assert records(TimelineVisit, contacts.TIMELINE, only, id=1001) == []


@pytest.mark.parametrize("empty", [[], {}, {"data": [], "count": 0, "total": 0}, {"count": "0"}])
def test_empty_timeline_in_any_shape_is_empty(empty: Any) -> None:
    assert events({"id": 1001, "timeline": empty}) == []


def test_an_object_with_an_id_in_place_of_a_part_is_its_only_entry() -> None:
    told = {"timeline": [], "automated": {"id": 7, "name": "Welcome", "type": "flow"}}
    (automation,) = records(TimelineAutomation, contacts.TIMELINE, told, id=1001)
    assert automation.name == "Welcome"


def test_numbered_collections_are_lists() -> None:
    entry = {"key": "a", "timestamp": 1383582780, "details": {"1": {"key": "steps", "value": 1}}}
    (event,) = events({"timeline": {"data": {"1": entry}, "count": 1}})
    assert event.details == [{"key": "steps", "value": 1}]


@pytest.mark.parametrize(
    ("timeline", "expected"),
    [
        (samples.TIMELINE, (2, 9)),
        (with_events({"key": "a"}), (1, 1)),
        ({"timeline": {"data": [{"key": "a"}], "count": "1", "total": "40"}}, (1, 40)),
        ({"timeline": {"data": {"1": {"key": "a"}}}}, (1, 1)),
        ({"timeline": []}, (0, 0)),
    ],
)
def test_extent_tells_a_cut_timeline(timeline: Timeline, expected: tuple[int, int]) -> None:
    assert parsing.timeline_extent(response(contacts.TIMELINE, timeline, id=1001)) == expected
