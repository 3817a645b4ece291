"""Timelines and online reviews: what was once received is never removed."""

from marketing_api.operations import reputation
from tests.warehouse.answering import Home
from tests.warehouse.timelines import event, load, timeline
from warehouse import tables


def opened(home: Home) -> list[str]:
    """The open dates of all events, in the order of their keys."""
    found = home.warehouse.run_query(
        "select details->0->>'value' as opened from source.timeline_events order by contact_id, event_key"
    )
    return [str(value) for value in found["opened"].to_pylist()]


def test_new_events_are_added_and_old_ones_stay(home: Home) -> None:
    load(home, timeline(home, 1, event(1), event(2)))
    report = load(home, timeline(home, 1, event(2), event(3), total=3, minutes=60))
    counts = report.tables["timeline_events"]
    assert (counts.new, counts.changed, counts.unchanged, counts.deleted) == (1, 0, 1, 0)
    assert len(home.rows(tables.TIMELINE_EVENTS)) == 3


def test_details_that_grow_update_the_event(home: Home) -> None:
    load(home, timeline(home, 1, event(1)))
    report = load(home, timeline(home, 1, event(1, "2026-03-02"), minutes=60))
    assert opened(home) == ["2026-03-02"]
    assert report.tables["timeline_events"].changed == 1


def test_an_empty_timeline_removes_nothing(home: Home) -> None:
    load(home, timeline(home, 1, event(1)))
    load(home, timeline(home, 1, minutes=60))
    assert len(home.rows(tables.TIMELINE_EVENTS)) == 1


def test_true_duplicates_survive_and_reloading_adds_none(home: Home) -> None:
    load(home, timeline(home, 1, event(1), event(1)))
    report = load(home, timeline(home, 1, event(1), event(1), minutes=60))
    assert report.tables["timeline_events"].unchanged == 2
    assert len(home.rows(tables.TIMELINE_EVENTS)) == 2


def test_a_group_that_grew_updates_the_stored_rows_and_adds_the_rest(home: Home) -> None:
    load(home, timeline(home, 1, event(1), event(1)))
    load(home, timeline(home, 1, event(1, "a"), event(1), event(1, "c"), minutes=60))
    assert opened(home) == ["a", "N/A", "c"]


def test_of_a_cut_group_content_that_is_stored_changes_nothing(home: Home) -> None:
    load(home, timeline(home, 1, event(1, "a"), event(1, "b")))
    report = load(home, timeline(home, 1, event(1, "b"), total=2, minutes=60))
    assert opened(home) == ["a", "b"]
    assert (report.tables["timeline_events"].new, report.tables["timeline_events"].changed) == (0, 0)


def test_of_a_cut_group_unseen_content_is_added_once(home: Home) -> None:
    load(home, timeline(home, 1, event(1, "a"), event(1, "b"), event(1, "c"), event(2, "other")))
    for minutes in (60, 120):
        load(
            home, timeline(home, 1, event(1, "d"), event(1, "d"), event(2, "seen"), total=9, minutes=minutes)
        )
    assert sorted(opened(home)) == ["a", "b", "c", "d", "seen"]
    occurrences = sorted(key.split("-")[1] for key in home.values(tables.TIMELINE_EVENTS, "event_key"))
    assert occurrences == ["0", "0", "1", "2", "3"]


def test_a_smaller_group_of_a_whole_timeline_updates_by_number(home: Home) -> None:
    load(home, timeline(home, 1, event(1, "a"), event(1, "b")))
    load(home, timeline(home, 1, event(1, "new"), minutes=60))
    assert opened(home) == ["new", "b"]


def test_whether_a_group_was_cut_is_told_by_its_own_answer(home: Home) -> None:
    load(home, *(timeline(home, id_, event(1, "a"), event(1, "b")) for id_ in (1, 2)))
    load(
        home,
        timeline(home, 1, event(1, "new"), minutes=60),
        timeline(home, 2, event(1, "new"), total=5, minutes=60),
    )
    assert opened(home) == ["new", "b", "a", "b", "new"]


def test_equal_events_of_different_contacts_are_different_rows(home: Home) -> None:
    load(home, timeline(home, 1, event(1), event(1)), timeline(home, 2, event(1)))
    load(home, timeline(home, 2, event(1, "x"), total=5, minutes=60))
    assert home.values(tables.TIMELINE_EVENTS, "contact_id") == [1, 1, 2]
    assert opened(home) == ["N/A", "N/A", "x"]


def test_a_contact_asked_twice_in_one_load_counts_its_events_once(home: Home) -> None:
    load(home, timeline(home, 1, event(1), event(2)), timeline(home, 1, event(1), event(2, "x"), minutes=5))
    assert len(home.rows(tables.TIMELINE_EVENTS)) == 2
    assert "x" in opened(home)


def test_visits_and_automations_come_from_the_same_answer(home: Home) -> None:
    utm = {
        "data": [{"link": "https://a.example", "utm": {"campaign": "c"}, "timestamp": 1_700_000_000}],
        "count": 1,
    }
    automated = {
        "data": [
            {
                "name": "Welcome",
                "type": "sms",
                "timestamp": 1_700_000_000,
                "details": [{"key": "k", "value": 1}],
            }
        ],
        "count": 1,
    }
    load(home, timeline(home, 1, event(1), utm=utm, automated=automated))
    assert home.values(tables.TIMELINE_VISITS, "utm_campaign") == ["c"]
    assert home.values(tables.TIMELINE_AUTOMATIONS, "details") == ['[{"key":"k","value":1}]']


def test_details_that_an_answer_leaves_out_are_kept(home: Home) -> None:
    load(home, timeline(home, 1, event(1, "a")))
    bare = event(1)
    del bare["details"]
    load(home, timeline(home, 1, bare, minutes=60))
    assert opened(home) == ["a"]


def test_online_reviews_stay_when_the_service_shows_only_the_latest(home: Home) -> None:
    def channel(*texts: str, minutes: float = 0) -> None:
        data = [
            {"username": "u", "date": "1700000000", "inquiry": text, "rating": "5", "sourceUrl": "s"}
            for text in texts
        ]
        payload = {"reviews": {"items": {"Yelp": {"AvgRating": "4.5", "data": data}}}}
        answer = home.answer(reputation.ONLINE, payload, minutes, channels="all")
        home.load([answer], tables.ONLINE_REVIEWS, tables.ONLINE_REVIEW_CHANNELS)

    channel("first", "first", "second")
    channel("first", "third", minutes=60)
    assert home.values(tables.ONLINE_REVIEWS, "inquiry") == ["first", "first", "second", "third"]
