"""Every declared operation answers over real HTTP, with the members that its declaration promises."""

import inspect
from collections.abc import Iterator
from importlib import import_module
from typing import Any

import pytest

from marketing_api.operations import ALL, AREAS
from marketing_api.sandbox.app import RULES, App
from marketing_api.sandbox.options import Options
from tests.dialects.server import serve
from tests.marketing_api.sandbox.asking import NOW, asking, fetch, params_for, read

#: Reads before writes, and deletions last, so that one server can answer all of them.
ORDER = sorted(ALL, key=lambda name: (not ALL[name].is_read, ALL[name].effect == "delete", name))


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with serve(Options(contacts=100, now=NOW, rate_limit=0), App) as url:
        yield url


@pytest.fixture(scope="module")
def params() -> dict[str, dict[str, Any]]:
    return params_for(asking())


def test_what_reads_as_a_rule_is_the_rule_of_an_operation() -> None:
    """Nobody would find out that a rule whose operation is spelled otherwise is never carried out."""
    modules = [import_module(f"marketing_api.sandbox.{area}") for area in AREAS]
    found = [
        one
        for module in modules
        for name, one in inspect.getmembers(module, inspect.isfunction)
        if not name.startswith("_") and list(inspect.signature(one).parameters) == ["call"]
    ]
    rules = list(RULES.values())
    assert found
    assert [one.__name__ for one in found if one not in rules] == []


@pytest.mark.parametrize("name", ORDER)
def test_operation_answers_with_what_it_declares(
    name: str, url: str, params: dict[str, dict[str, Any]]
) -> None:
    operation = ALL[name]
    status, body, headers = fetch(url, name, operation.method, **params[name])
    assert status == 200
    assert headers["x-rate-limit-remaining"]
    data = read(body)
    if operation.is_read:
        assert not operation.at or operation.at in data
        assert set(operation.members) <= set(data)
    else:
        assert set(data) == set(operation.result)
        assert isinstance(data["item"], str)


@pytest.mark.parametrize("verb", ["GET", "POST", "PUT", "DELETE"])
def test_any_verb_is_accepted(verb: str, url: str) -> None:
    status, body, _ = fetch(url, "app/me", verb)
    assert status == 200
    assert read(body)["business"]["businessName"]
