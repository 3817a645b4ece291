"""XML replies: the plain mapping of the JSON envelope, compared by reading both."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ElementTree
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from marketing_api.operations import ALL
from marketing_api.sandbox.responses import Request, Response, as_xml
from tests.marketing_api.sandbox.asking import Asking, asking, content, params_for

#: What XML can hold: no control characters but these, no halves of surrogate pairs; a bare return becomes a line break.
TEXT = st.text(st.characters(exclude_categories=("Cs", "Cc"), exclude_characters="\ufffe\uffff") | st.sampled_from("\t\n"))
SCALAR = TEXT | st.integers() | st.booleans() | st.none()
JSON = st.recursive(SCALAR, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4), max_leaves=20)


def plain(value: Any) -> Any:
    """What remains of a JSON value in XML, where all is text: ordered (name, value) pairs, lists under `item`, empty for nothing."""
    if isinstance(value, dict):
        return [(name, plain(one)) for name, one in value.items()] or ""
    if isinstance(value, list):
        return [("item", plain(one)) for one in value] or ""
    return "" if value is None else value if isinstance(value, str) else json.dumps(value)


def parsed(element: ElementTree.Element) -> Any:
    children = [(child.get("key", child.tag), parsed(child)) for child in element]
    return children or element.text or ""


@given(data=st.dictionaries(TEXT, JSON, max_size=4), beside=st.dictionaries(st.just("rate-limit"), JSON))
def test_every_value_is_found_again(data: dict[str, Any], beside: dict[str, Any]) -> None:
    reply = as_xml(Response(200, json.dumps({"response": {"header": {"status": "ok"}, "data": data}, **beside}).encode()))
    assert reply.kind.startswith("application/xml")
    assert parsed(ElementTree.fromstring(content(reply))) == plain({"header": {"status": "ok"}, "data": data, **beside})


@pytest.mark.parametrize("operation", [name for name, one in ALL.items() if one.is_read])
def test_reads_answer_in_xml_what_they_answer_in_json(operation: str) -> None:
    ask = asking(contacts=100)
    params = params_for(ask)[operation]
    as_json = ask.whole(operation, **params)["response"]
    whole = parsed(ElementTree.fromstring(content(_reply(ask, operation, params))))
    assert dict(whole)["data"] == plain(as_json["data"])


@pytest.mark.parametrize("query", ["key=wrong", "key=sandbox-key"])
def test_refusals_are_in_xml_too(query: str) -> None:
    reply = asking(contacts=100).app.respond(Request("GET", "/1/emailmarketing/getcontact.xml", query), 5.0)
    assert dict(parsed(ElementTree.fromstring(content(reply))))["header"][0] == ("status", "error")


def _reply(ask: Asking, operation: str, params: dict[str, Any]) -> Response:
    query = "&".join([f"{name}={value}" for name, value in params.items()] + ["key=sandbox-key"]).replace("+", "%2B")
    return ask.app.respond(Request("GET", f"/1/{operation}.XML", query), 5.0)
