"""Which requests the UI answers, whatever a page of another address makes a browser send."""

from typing import Any

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from pipelines.web_guard import find_objection

PORT = 3000
OURS = ("127.0.0.1:3000", "localhost:3000", "[::1]:3000")
#: What looks like ours.
HOSTS = ("", "127.0.0.1", "127.0.0.1:80", "127.0.0.1:30000", "127.0.0.1:3000.", "127.1:3000", "0.0.0.0:3000", "2130706433:3000",
         "localhost", "localhost.:3000", "localhost:3000, evil.example", "a@localhost:3000", "[::]:3000", "[::ffff:127.0.0.1]:3000",
         "evil.example", "evil.example:3000", "127.0.0.1.evil.example:3000", "localhost:3000.evil.example")  # fmt: skip
ORIGINS = ("", "null", "file://", "https://127.0.0.1:3000", "http://127.0.0.1", "http://127.0.0.1:3001", "http://127.0.0.1:3000/",
           "http://localhost:3001", "http://evil.example", "http://evil.example:3000", "http://127.0.0.1:3000.evil.example",
           "http://127.0.0.1:3000 http://evil.example", "chrome-extension://abcdefgh")  # fmt: skip
SITES = ("same-origin", "none", "same-site", "cross-site", "", "unheard-of")
MODES = ("navigate", "cors", "no-cors", "same-origin", "websocket", "")
DESTINATIONS = ("document", "iframe", "image", "script", "empty", "websocket", "")
#: What a page may send to another origin without asking beforehand (the Fetch standard: "CORS-safelisted"),
#: some of it made to look like JSON to whoever searches for the word.
SIMPLE = ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "text/plain; application/json",
          "text/plain;charset=application/json", "multipart/form-data; boundary=application/json")  # fmt: skip
PATHS = ("/", "/graphql", "/graphql/", "/runs", "/logs/a/b.err", "/notebook", "/download_debug/1")
PATHS += ("/report_asset_materialization/a",)

Headers = list[tuple[str, str]]


def scope(
    headers: Headers, method: str = "GET", path: str = "/", query: str = "", kind: str = "http"
) -> dict[str, Any]:
    lines = [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in headers]
    return {"type": kind, "headers": lines, "path": path, "query_string": query.encode()} | (
        {"method": method} if kind == "http" else {}
    )


def refused(headers: Headers, **request: str) -> bool:
    return find_objection(scope(headers, **request), PORT) is not None


def browser(site: str, mode: str, destination: str, origin: str | None = None) -> Headers:
    fetch = zip(("Site", "Mode", "Dest"), (site, mode, destination), strict=True)
    sent = [("Host", OURS[0]), *((f"Sec-Fetch-{name}", value) for name, value in fetch)]
    return [*sent, ("Origin", origin)] if origin else sent


anything = {
    "method": st.sampled_from(["GET", "HEAD", "OPTIONS", "POST"]),
    "path": st.sampled_from(PATHS),
    "query": st.sampled_from(["", "query=mutation"]),
    "kind": st.sampled_from(["http", "websocket"]),
}
requests = st.fixed_dictionaries(anything)
#: What belongs to any request, and makes nothing else harmless.
others = st.lists(
    st.one_of(
        st.tuples(st.just("Sec-Fetch-Site"), st.sampled_from(SITES)),
        st.tuples(st.just("Sec-Fetch-Mode"), st.sampled_from(MODES)),
        st.tuples(st.just("Sec-Fetch-Dest"), st.sampled_from(DESTINATIONS)),
        st.tuples(st.just("Content-Type"), st.just("application/json")),
        st.tuples(st.just("X-Forwarded-Host"), st.just(OURS[0])),
        st.tuples(st.just("Referer"), st.just("http://127.0.0.1:3000/")),
    ),
    unique_by=lambda line: line[0],
)

POSTED, SUBSCRIBED = {"method": "POST", "path": "/graphql"}, {"kind": "websocket", "path": "/graphql"}
RELOADED = {"path": "/runs", "query": "q=status"}
UTF8 = ("Content-Type", "application/json; charset=utf-8")
#: As Chromium sends them for the UI (13 kinds of requests there are alike), and as programs do.
OWN: dict[str, tuple[Headers, dict[str, str]]] = {
    "typed or bookmarked": (browser("none", "navigate", "document"), {}),
    "followed from elsewhere": (browser("cross-site", "navigate", "document"), {"path": "/runs/1"}),
    "reloaded with a filter": (browser("same-origin", "navigate", "document"), RELOADED),
    "script": (browser("same-origin", "no-cors", "script"), {"path": "/_next/a.js"}),
    "worker": (browser("same-origin", "same-origin", "worker"), {"path": "/_next/a.js"}),
    "manifest": (browser("same-origin", "cors", "manifest", f"http://{OURS[0]}"), {"path": "/manifest.json"}),
    "query": ([*browser("same-origin", "cors", "empty", f"http://{OURS[0]}"), UTF8], POSTED),
    "query by name": (
        [
            ("Host", "LocalHost:3000"),
            ("Origin", "http://localhost:3000"),
            ("Content-Type", "Application/JSON"),
        ],
        POSTED,
    ),
    "subscription": ([("Host", OURS[0]), ("Origin", f"http://{OURS[0]}")], SUBSCRIBED),
    "GraphiQL": (browser("none", "navigate", "document"), {"path": "/graphql"}),
    "download of a log": (browser("same-origin", "navigate", "document"), {"path": "/logs/a/b.err"}),
    "curl": ([("Host", OURS[2]), ("Content-Type", "application/json")], POSTED),
    "program's subscription": ([("Host", OURS[1])], SUBSCRIBED),
}


@pytest.mark.parametrize("name", OWN)
def test_the_ui_and_programs_of_this_machine_are_answered(name: str) -> None:
    headers, request = OWN[name]
    assert find_objection(scope(headers, **request), PORT) is None


@given(st.sampled_from(HOSTS) | st.text(st.characters(max_codepoint=255)), requests, others)
def test_another_host_is_refused(host: str, request: dict[str, str], more: Headers) -> None:
    """After its address was pointed here, a page's requests are those of its own origin."""
    assume(host.strip().lower() not in OURS)
    assert refused([("Host", host), ("Origin", f"http://{host}"), *more], **request)
    assert refused([("Host", host), *more], **request)
    assert refused(more, **request), "HTTP/1.0 may name none"


LATIN = st.text(st.characters(max_codepoint=255))


@given(st.sampled_from(ORIGINS) | LATIN, st.sampled_from(OURS), requests, others)
def test_another_origin_is_refused(origin: str, host: str, request: dict[str, str], more: Headers) -> None:
    """Our other name included: it may serve somebody else's page (`localhost` has two addresses)."""
    assume(origin.strip().lower() != f"http://{host}")
    assert refused([("Host", host), ("Origin", origin), *more], **request)
    other = next(name for name in OURS if name != host)
    assert refused([("Host", host), ("Origin", f"http://{other}"), *more], **request)


LOOK = {"kind": "http", "method": "HEAD", "path": "/", "query": ""}


@example("cross-site", "navigate", "document", LOOK, "text/plain")
@given(
    st.sampled_from(["cross-site", "same-site"]),
    st.sampled_from(MODES),
    st.sampled_from(DESTINATIONS),
    requests,
    st.sampled_from(SIMPLE),
)
def test_a_page_of_another_address_brings_about_nothing(
    site: str, mode: str, destination: str, request: dict[str, str], content_type: str
) -> None:
    """Only a link to a page is followed, without a query that could fill in a form of the UI."""
    headers = [*browser(site, mode, destination), ("Content-Type", content_type)]
    is_page = (request["kind"], request["method"]) == ("http", "GET")
    is_link = is_page and (mode, destination) == ("navigate", "document")
    assert refused(headers, **request) is not (is_link and not request["query"])


@given(st.sampled_from(SIMPLE) | st.none(), requests)
def test_no_request_of_an_old_browser_changes_anything(
    content_type: str | None, request: dict[str, str]
) -> None:
    """Without Sec-Fetch headers, and without an Origin where only newer ones send it."""
    request |= {"kind": "http"}
    headers = [("Host", OURS[0]), *([("Content-Type", content_type)] if content_type else [])]
    reads = request["method"] != "POST" and not (request["path"].startswith("/graphql") and request["query"])
    assert refused(headers, **request) is not reads


@given(st.sampled_from(sorted(OWN)), st.data())
def test_a_header_that_stands_twice_is_refused(name: str, data: st.DataObject) -> None:
    """In the same letters or others: the server behind might take the other one."""
    headers, request = OWN[name]
    judged = [line for line in headers if line[0] not in ("Referer",)]
    again, value = data.draw(st.sampled_from(judged))
    place = data.draw(st.integers(0, len(headers)))
    assert refused([*headers[:place], (again.upper(), value), *headers[place:]], **request)


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "CONNECT", "TRACE", "get"])
def test_other_methods_are_refused(method: str) -> None:
    assert refused([("Host", OURS[0]), ("Content-Type", "application/json")], method=method)


def test_a_subscription_of_a_browser_names_its_page() -> None:
    assert refused(browser("same-origin", "websocket", "websocket"), kind="websocket")
    named = browser("same-origin", "websocket", "websocket", f"http://{OURS[0]}")
    assert not refused(named, kind="websocket")


def test_port_80_is_left_out_by_browsers() -> None:
    assert find_objection(scope([("Host", "127.0.0.1"), ("Origin", "http://127.0.0.1")]), 80) is None
    assert refused([("Host", "127.0.0.1")])


@pytest.mark.parametrize(
    ("headers", "request_", "said"),
    [
        ([("Host", "evil.example")], {}, "open http://127.0.0.1:3000"),
        (browser("cross-site", "navigate", "document"), {"query": "a=b"}, "press Enter in the address bar"),
        ([("Host", OURS[0])], {"method": "POST"}, "with the header content-type: application/json"),
        ([("Host", OURS[0])], {"path": "/graphql", "query": "query={a}"}, "POST them as application/json"),
        ([("Host", OURS[0]), ("host", OURS[0])], {}, "send it once"),
    ],
)
def test_a_refusal_says_what_to_do(headers: Headers, request_: dict[str, str], said: str) -> None:
    assert said in (find_objection(scope(headers, **request_), PORT) or "")
