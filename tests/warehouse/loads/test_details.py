"""Rows of several operations, whose details are asked only when they are new or changed."""

import datetime as dt
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from marketing_api.exchange import Response
from marketing_api.operations import goals, lists, social, webhooks
from tests.warehouse.answering import START, Home
from warehouse import tables
from warehouse.loads.listing import needs_detail

UTC = ZoneInfo("UTC")


def goal_list(home: Home, *entries: dict[str, Any], minutes: float = 0) -> Response:
    return home.answer(goals.LISTS, {"goals": {"count": len(entries), "items": list(entries)}}, minutes)


def goal_by_domain(home: Home, domain_id: int, *entries: dict[str, Any], minutes: float = 0) -> Response:
    return home.answer(goals.LISTBYDOMAIN, {"goals": {"items": list(entries)}}, minutes, domainid=domain_id)


def goal_detail(home: Home, entry: dict[str, Any], minutes: float = 0) -> Response:
    return home.answer(goals.SHOW, {"goal": entry}, minutes, id=entry["id"])


def needed(home: Home, *answers: Response, table: tables.Table = tables.GOALS) -> list[Any]:
    ids = [answer.request_id for answer in answers]
    known = home.warehouse.listing_hashes(table, "main")
    return [
        getattr(record, table.key[0])
        for record in needs_detail(table, home.archive.responses(ids), known, UTC)
    ]


def test_parts_of_a_row_are_merged_by_what_they_know(home: Home) -> None:
    named, links = {"id": 1, "name": "Sign-up"}, ["https://a.example"]
    detail = named | {"goal_value": {"type": "Fixed", "value": "80.0000"}, "links": links}
    answers = [goal_list(home, named), goal_by_domain(home, 5, named), goal_detail(home, detail)]
    home.load(answers, tables.GOALS)
    (row,) = home.rows(tables.GOALS)
    assert (row["domain_id"], row["links"]) == (5, links)
    assert (row["value_type"], str(row["value"])) == ("Fixed", "80.0000")


def test_columns_that_no_part_knows_keep_what_is_stored(home: Home) -> None:
    detail = goal_detail(home, {"id": 1, "type": "Event Triggered"})
    home.load([goal_list(home, {"id": 1, "name": "A"}), detail], tables.GOALS)
    report = home.load([goal_list(home, {"id": 1, "name": "B"}, minutes=60)], tables.GOALS)
    (row,) = home.rows(tables.GOALS)
    assert (row["name"], row["type"]) == ("B", "Event Triggered")
    assert report.tables["goals"].changed == 1


def test_the_last_answer_that_knows_a_column_counts_even_when_it_says_nothing(home: Home) -> None:
    listing = goal_list(home, {"id": 1, "name": "A", "type": "x"})
    home.load([listing, goal_detail(home, {"id": 1, "type": None})], tables.GOALS)
    assert home.values(tables.GOALS, "type") == [None]


def test_a_listing_that_says_nothing_new_changes_nothing(home: Home) -> None:
    listing = goal_list(home, {"id": 1, "name": "A", "odd": 1})
    home.load([listing, goal_detail(home, {"id": 1, "type": "t", "other": 2})], tables.GOALS)
    before = home.rows(tables.GOALS)
    report = home.load([goal_list(home, {"id": 1, "name": "A", "odd": 1}, minutes=60)], tables.GOALS)
    assert home.rows(tables.GOALS) == before
    assert report.tables["goals"].unchanged == 1


def test_unknown_fields_of_all_parts_are_kept(home: Home) -> None:
    detail = goal_detail(home, {"id": 1, "other": {"b": 2, "a": 1}})
    home.load([goal_list(home, {"id": 1, "odd": 1}), detail], tables.GOALS)
    home.load([goal_list(home, {"id": 1, "odd": 3}, minutes=60)], tables.GOALS)
    assert home.values(tables.GOALS, "extra") == ['{"odd":3,"other":{"a":1,"b":2}}']


def test_details_alone_never_prove_that_other_rows_are_gone(home: Home) -> None:
    home.load([goal_list(home, {"id": 1}, {"id": 2})], tables.GOALS)
    home.load([goal_detail(home, {"id": 1, "name": "A"}, minutes=60)], tables.GOALS)
    assert home.values(tables.GOALS, "_deleted_at") == [None, None]


def test_a_row_that_only_a_detail_names_is_not_in_the_listing(home: Home) -> None:
    home.load([goal_list(home, {"id": 1}, {"id": 2})], tables.GOALS)
    answers = [
        goal_list(home, {"id": 1}, minutes=60),
        goal_detail(home, {"id": 2, "name": "late"}),
        goal_by_domain(home, 5, {"id": 3}),
    ]
    home.load(answers, tables.GOALS)
    assert home.values(tables.GOALS, "goal_id", "_deleted_at is null") == [1]
    assert home.values(tables.GOALS, "goal_id") == [1, 2]


def test_detail_is_needed_for_new_and_for_changed_entries_only(home: Home) -> None:
    first = goal_list(home, {"id": 1, "name": "A"}, {"id": 2, "name": "B"})
    assert needed(home, first) == [1, 2]
    home.load([first, goal_detail(home, {"id": 1}), goal_detail(home, {"id": 2})], tables.GOALS)
    entries = [{"id": 1, "name": "A"}, {"id": 2, "name": "changed"}, {"id": 3, "name": "C"}]
    second = goal_list(home, *entries, minutes=60)
    assert needed(home, second) == [2, 3]


def test_a_detail_that_did_not_come_is_still_needed(home: Home) -> None:
    first = goal_list(home, {"id": 1, "name": "A"}, {"id": 2, "name": "B"})
    home.load([first, goal_detail(home, {"id": 1})], tables.GOALS)
    assert needed(home, first) == [2]


def test_a_detail_that_could_not_be_read_is_still_needed_one_without_a_value_is_not(home: Home) -> None:
    first = goal_list(home, {"id": 1, "name": "A"}, {"id": 2, "name": "B"})
    details = [({"id": "one"}, 1), ({"id": 2, "has_action": "perhaps"}, 2)]
    answers = [home.answer(goals.SHOW, {"goal": goal}, id=goal_id) for goal, goal_id in details]
    home.load([first, *answers], tables.GOALS)
    assert needed(home, first) == [1]


def test_a_change_in_the_listing_is_still_seen_after_it_was_loaded_without_detail(home: Home) -> None:
    home.load([goal_list(home, {"id": 1, "name": "A"}), goal_detail(home, {"id": 1})], tables.GOALS)
    changed = goal_list(home, {"id": 1, "name": "B"}, minutes=60)
    home.load([changed], tables.GOALS)
    assert needed(home, changed) == [1]


def test_a_row_that_comes_back_needs_its_detail_again(home: Home) -> None:
    home.load([goal_list(home, {"id": 1, "name": "A"}), goal_detail(home, {"id": 1})], tables.GOALS)
    home.load([goal_list(home, minutes=60)], tables.GOALS)
    assert needed(home, goal_list(home, {"id": 1, "name": "A"}, minutes=90)) == [1]


def test_learning_a_detail_is_no_change_of_the_row_when_it_says_the_same(home: Home) -> None:
    home.load([goal_list(home, {"id": 1, "name": "A"})], tables.GOALS)
    listing = goal_list(home, {"id": 1, "name": "A"}, minutes=60)
    report = home.load([listing, goal_detail(home, {"id": 1, "name": "A"}, 60)], tables.GOALS)
    (row,) = home.rows(tables.GOALS)
    assert row["_changed_at"] == row["_first_seen_at"]
    assert row["_listing_hash"]
    assert report.tables["goals"].changed == 0


def test_a_listing_that_is_loaded_again_without_its_details_is_not_older_than_itself(home: Home) -> None:
    listing, detail = goal_list(home, {"id": 1, "name": "A"}), goal_detail(home, {"id": 1, "name": "A"}, 1)
    home.load([listing, detail], tables.GOALS)
    assert home.load([listing], tables.GOALS).tables["goals"].stale == []
    home.load([goal_list(home, {"id": 1, "name": "A"}, minutes=2)], tables.GOALS)
    assert home.load([listing, detail], tables.GOALS, is_complete=False).tables["goals"].stale == ["all"]


def test_a_list_keeps_the_fields_that_only_its_own_answer_shows(home: Home) -> None:
    listing = home.answer(
        lists.GETLISTS, {"lists": {"items": [{"id": 1, "name": "A"}, {"id": 2, "name": "B"}]}}
    )
    details = [
        home.answer(
            lists.GETLIST,
            {"list": {"id": 1, "name": "A", "success_email": "hi", "fields": {"7": "City", "8": "Phone"}}},
            id=1,
        ),
        home.answer(lists.GETLIST, {"list": {"id": 2, "name": "B", "fields": {"9": "Age"}}}, id=2),
    ]
    home.load([listing, *details], tables.LISTS, tables.LIST_FIELDS)
    later = home.answer(
        lists.GETLISTS, {"lists": {"items": [{"id": 1, "name": "A"}, {"id": 2, "name": "Bb"}]}}, 60
    )
    detail = home.answer(lists.GETLIST, {"list": {"id": 2, "name": "Bb", "fields": []}}, 60, id=2)
    home.load([later, detail], tables.LISTS, tables.LIST_FIELDS, shrink_limit=0.5)
    assert home.values(tables.LIST_FIELDS, "field_id", "_deleted_at is null") == ["7", "8"]
    assert home.values(tables.LISTS, "success_email", "list_id = 1") == ["hi"]


def test_webhooks_merge_listing_and_detail(home: Home) -> None:
    listing = home.answer(webhooks.LISTS, {"webhooks": {"items": [{"id": 4, "name": "Exit"}]}})
    detail = home.answer(
        webhooks.SHOW,
        {"webhook": {"id": 4, "domain_id": "77", "action_rules": {"delay": {"minutes": "2"}}}},
        id=4,
    )
    home.load([listing, detail], tables.WEBHOOKS)
    assert home.rows(tables.WEBHOOKS, "name, domain_id, delay_seconds") == [
        {"name": "Exit", "domain_id": 77, "delay_seconds": 120}
    ]
    assert home.warehouse.domain_ids("main") == [77]


def calendar(home: Home, *posts: tuple[int, str], minutes: float = 0) -> Response:
    channel = {"network": "Facebook", "type": "pages", "id": "1", "name": "P", "date": "03/01/2026 10:00 AM"}
    items = {
        str(number): {"id": id_, "message": text, "channel": channel}
        for number, (id_, text) in enumerate(posts, 1)
    }
    data = {"calendar": {"items": {"2026-03-01": items}}}
    return home.answer(social.CALENDAR, data, minutes, from_="2026-03-01", to="2026-03-02")


def load_details_of_two_posts(home: Home) -> None:
    details = [
        home.answer(
            social.GETPOST,
            {"item": {"id": id_, "title": "T", "uid": f"fb_{id_}"}},
            id=id_,
            channel="facebook",
        )
        for id_ in (1, 2)
    ]
    home.load(details, tables.SOCIAL_POST_DETAILS)


def test_posts_are_asked_for_details_when_new_or_changed(home: Home) -> None:
    scope = {"from_on": "2026-03-01", "to_on": "2026-03-02"}
    home.load([calendar(home, (1, "a"), (2, "b"))], tables.SOCIAL_POSTS, scope=scope)
    assert home.warehouse.posts_needing_detail("main", ["twitter"]) == []
    assert home.warehouse.posts_needing_detail("main", ["facebook"]) == [(2, "facebook"), (1, "facebook")]
    load_details_of_two_posts(home)
    assert home.warehouse.posts_needing_detail("main", ["facebook"]) == []
    home.load(
        [calendar(home, (1, "a"), (2, "changed"), (3, "c"), minutes=60)], tables.SOCIAL_POSTS, scope=scope
    )
    assert home.warehouse.posts_needing_detail("main", ["facebook"]) == [(3, "facebook"), (2, "facebook")]


@pytest.mark.slow
def test_a_post_whose_time_has_come_is_asked_for_until_the_network_has_an_id_for_it(home: Home) -> None:
    scope = {"from_on": "2026-03-01", "to_on": "2026-03-02"}
    hours = (dt.datetime(2026, 3, 1, 10, tzinfo=dt.UTC) - START).total_seconds() / 3600

    def needing(after_h: float, item: dict[str, object]) -> list[tuple[int, str]]:
        minutes = (hours + after_h) * 60
        home.load([calendar(home, (1, "a"), minutes=minutes)], tables.SOCIAL_POSTS, scope=scope)
        detail = home.answer(social.GETPOST, {"item": {"id": 1, **item}}, minutes, id=1, channel="facebook")
        home.load([detail], tables.SOCIAL_POST_DETAILS)
        return home.warehouse.posts_needing_detail("main", ["facebook"])

    assert needing(-2, {"title": "T"}) == [], "its time has not come"
    assert needing(24, {"title": "T"}) == [(1, "facebook")]
    assert needing(48, {"title": "T", "item": {"uid": "fb_1"}}) == []
    assert needing(49, {"title": "T", "item": {"uid": ""}}) == [(1, "facebook")]
    assert needing(24 * 20, {"title": "T", "item": {"uid": ""}}) == [], (
        "nobody knows why, and it is asked for no more"
    )


def test_details_of_a_post_that_is_gone_go_with_it(home: Home) -> None:
    scope = {"from_on": "2026-03-01", "to_on": "2026-03-02"}
    home.load([calendar(home, (1, "a"), (2, "b"))], tables.SOCIAL_POSTS, scope=scope)
    load_details_of_two_posts(home)
    home.load([calendar(home, (2, "b"), minutes=60)], tables.SOCIAL_POSTS, scope=scope)
    assert home.values(tables.SOCIAL_POST_DETAILS, "post_id", "_deleted_at is null") == [2]
    assert home.values(tables.SOCIAL_POST_DETAILS, "post_id") == [1, 2]
