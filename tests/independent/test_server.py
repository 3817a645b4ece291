"""The second server keeps the rules that the assertions on the tool rest on."""

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


def ask(service: Service, operation: str, **params: Any) -> Any:
    return requests.get(
        f"{service.url}/{operation}.json", params={"key": service.account.key, **params}, timeout=HANGS_S
    ).json()


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
