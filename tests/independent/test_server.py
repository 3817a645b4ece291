"""The second server keeps the rules that the assertions on the tool rest on."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import requests

from tests.waiting import HANGS_S

from . import generate
from .server import Service, serve
from .variants import Variants


@pytest.fixture
def made() -> Any:
    return generate.account(5, generate.Sizes(contacts=20))


@pytest.fixture
def service(made: Any) -> Iterator[Service]:
    with serve(made, limit=500) as running:
        yield running


def ask(service: Service, operation: str, **params: Any) -> Any:
    return requests.get(
        f"{service.url}/{operation}.json", params={"key": service.account.key, **params}, timeout=HANGS_S
    ).json()


def data(service: Service, operation: str, **params: Any) -> Any:
    body = ask(service, operation, **params)
    assert body["response"]["header"]["status"] == "ok", body
    return body["response"]["data"]


def rows(items: Any) -> list[Any]:
    return list(items.values()) if isinstance(items, dict) else items


def test_no_window_lets_more_through_than_the_limit(made: Any) -> None:
    with serve(made, limit=4) as service:
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(lambda _: ask(service, "app/me"), range(60)))
        assert max(service.log.per_window().values()) <= 4
        assert service.log.share(429) > 0.2


def test_another_client_takes_its_share_of_the_window(made: Any) -> None:
    with serve(made, Variants(other_client=10), limit=15) as service:
        with ThreadPoolExecutor(8) as pool:
            reports = [body["rate-limit"] for body in pool.map(lambda _: ask(service, "app/me"), range(60))]
        assert max(service.log.per_window().values()) <= 5
        assert {report["reached"] for report in reports} == {0, 1}


def test_bad_key_is_refused_in_both_observed_ways(made: Any) -> None:
    for variants, status, code in ((Variants(), 200, 1002), (Variants(bad_key=1000), 401, 1000)):
        with serve(made, variants) as service:
            reply = requests.get(f"{service.url}/app/me.json?key=wrong", timeout=HANGS_S)
            assert (reply.status_code, reply.json()["response"]["data"]["errorCode"]) == (status, code)


@pytest.mark.parametrize("fault", ["500", "502-html", "200-html", "empty", "cut", "reset", "stall", "429"])
def test_faults_are_what_they_are_called_and_end_after_two(made: Any, fault: str) -> None:
    with serve(made, Variants(faults={fault: 1.0}, stall_seconds=0.05)) as service:
        failures = 0
        for _ in range(3):
            try:
                ask(service, "app/me")["response"]["data"]["business"]
            except (requests.RequestException, ValueError, KeyError):
                failures += 1
        assert failures == 2
        assert [entry.fault for entry in service.log.entries] == [fault, fault, ""]


def test_synced_contact_shows_late_when_the_service_queues(made: Any) -> None:
    with serve(made, Variants(delayed_writes=0.3)) as service:
        listed, email = made.lists[0].list_id, "later@example.com"
        data(service, "emailmarketing/synccontact", listid=listed, email=email)
        assert "errorCode" in data(service, "emailmarketing/getcontactbyemail", email=email)["contact"]
        service.closing.wait(0.35)
        assert len(data(service, "emailmarketing/getcontactbyemail", email=email)["contact"]) == 1


@pytest.mark.parametrize("fault", ["500", "reset", "cut", "502-html", "200-html", "empty"])
def test_a_fault_on_a_write_comes_before_or_after_its_effect(made: Any, fault: str) -> None:
    asked = {"id": made.members[0].contact_id, "description": "called", "datetime": "2026-03-01 14:05:00"}
    for name, effects in ((fault, 1), (f"{fault}-before", 0)):
        with serve(made, Variants(write_faults={name: 1.0})) as service:
            with pytest.raises((requests.RequestException, ValueError, KeyError)):
                ask(service, "emailmarketing/addactivity", **asked)["response"]["header"]
            assert len(service.world.effects) == effects


def test_a_written_activity_shows_late_and_in_the_form_of_the_variant(made: Any) -> None:
    told = {
        "activity_key": "note",
        "activity_place": "detail",
        "activity_text": "escaped",
        "activity_time": "minutes",
    }
    with serve(made, Variants(delayed_activities=0.3, **told)) as service:
        contact = made.members[0].contact_id
        data(
            service,
            "emailmarketing/addactivity",
            id=contact,
            description="a <b> & 'c'",
            datetime="2026-03-01 14:05:33",
        )
        assert "note" not in str(data(service, "emailmarketing/getcontacttimeline", id=contact))
        service.closing.wait(0.35)
        (entry,) = [
            e
            for e in data(service, "emailmarketing/getcontacttimeline", id=contact)["timeline"]["data"]
            if e["key"] == "note"
        ]
        assert (entry["details"][0]["value"], entry["datetime"]) == (
            "a &lt;b&gt; &amp; &#039;c&#039;",
            "03/01/2026 14:05",
        )
        assert "timestamp" not in entry


def test_refusals_are_soft_where_the_variant_says_so(made: Any) -> None:
    asked = {"id": 1, "description": "called", "datetime": "2026-03-01 14:05:00"}
    with serve(
        made,
        Variants(soft_refusals=frozenset({"emailmarketing/addactivity"}), soft_wording="No such contact"),
    ) as service:
        assert data(service, "emailmarketing/addactivity", **asked) == {"item": "No such contact"}
        assert not service.world.effects
        assert (
            ask(service, "emailmarketing/deletecontact", id=1, listid=made.lists[0].list_id)["response"][
                "header"
            ]["status"]
            == "error"
        )


@pytest.mark.parametrize(("kept", "lists"), [("all", 2), ("first", 1), ("refused", 0)])
def test_several_lists_at_once_are_a_variant(made: Any, kept: str, lists: int) -> None:
    with serve(made, Variants(several_lists=kept)) as service:
        ask(
            service,
            "emailmarketing/synccontact",
            email="new@example.com",
            listid=",".join(str(each.list_id) for each in made.lists[:2]),
        )
        assert sum(member.email == "new@example.com" for member in made.members) == lists
