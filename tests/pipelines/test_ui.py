"""The Dagster UI as a person starts it: it works in a browser, and no page of another address can use it."""

import json
import socket
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import quote, unquote_plus

import pytest
import requests
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect
from websockets.typing import Origin, Subprotocol

from home.door import report_of
from tests.pipelines.browser import CHROMIUM, Browser, browser
from tests.pipelines.running import finish, start
from tests.ports import free_port
from tests.waiting import HANGS_S, wait_until

#: A web server and a browser; what the guard lets through is in `test_web_guard`.
pytestmark = pytest.mark.slow
needs_browser = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium here: `apt-get install chromium`")

#: A dry run that is marked with who launched it, written in JavaScript, in which the attacker is a variable.
LAUNCH = """(attacker) => `mutation { launchRun(executionParams: {
    selector: {repositoryLocationName: "marketing-sync", repositoryName: "__repository__", jobName: "push_tags"},
    runConfigData: "{ops: {plan_tags: {config: {sql: select 1}}}}",
    executionMetadata: {tags: [{key: "attacker", value: "${attacker}"}]}
}) { __typename } }`"""
ATTACKERS = "{ runsOrError { ... on Runs { results { tags { key value } } } } }"
EVIL = "evil.example"
GRAPHQL_WS = Subprotocol("graphql-ws")


def launch(attacker: str) -> str:
    """The same in Python."""
    return LAUNCH.partition("`")[2].strip("`").replace("${attacker}", attacker)


@dataclass(frozen=True)
class Ui:
    """The served UI, and a program of this machine that asks it."""

    port: int
    home: Path

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def api(self) -> str:
        return f"{self.url}/graphql"

    def launched(self) -> list[str]:
        """Who launched runs."""
        answer = requests.post(self.api, json={"query": ATTACKERS}, timeout=HANGS_S)
        runs = answer.json()["data"]["runsOrError"]["results"]
        return sorted(tag["value"] for run in runs for tag in run["tags"] if tag["key"] == "attacker")


@pytest.fixture(scope="module")
def ui(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ui]:
    port = free_port()
    home = tmp_path_factory.mktemp("ui") / "home"
    process = start(
        home,
        None,
        "ui",
        "--port",
        str(port),
        "--sandbox",
        MARKETING_SANDBOX_CONTACTS="10",
    )
    try:
        while "Dagster UI" not in process.stdout.readline():
            assert process.poll() is None
        assert requests.get(f"http://127.0.0.1:{port}/server_info", timeout=HANGS_S).ok, (
            "whoever comes early waits"
        )
        yield Ui(port, home)
    finally:
        process.terminate()
        finish(process)


@dataclass(frozen=True)
class Elsewhere:
    """A server of another port, with the attacking page; `received` is what it was sent itself."""

    port: int
    received: list[str]


@pytest.fixture(scope="module")
def elsewhere() -> Iterator[Elsewhere]:
    received: list[str] = []
    page = f"<script>{Path(__file__).with_name('attack_page.js').read_text()}</script><body></body>".encode()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            if self.path.startswith("/graphql"):
                received.append(unquote_plus(self.path) + body.decode())
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.send_header("Content-Length", str(len(page)))
            self.end_headers()
            self.wfile.write(page)

        do_POST = do_GET  # noqa: N815 (the base class's names)

        def log_message(self, *_: object) -> None:
            """Nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield Elsewhere(server.server_address[1], received)
        server.shutdown()


@pytest.fixture(scope="module")
def tab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with browser(tmp_path_factory.mktemp("chromium"), f"--host-resolver-rules=MAP {EVIL} 127.0.0.1") as tab:
        yield tab


def attack(tab: Browser, target: str, name: str) -> dict[str, str]:
    """Every way of the attacking page that is open; what the page saw of each."""
    return dict(tab.run(f"attack({json.dumps(target)}, (way) => ({LAUNCH})({json.dumps(name)} + ' ' + way))"))


# -- over HTTP


def raw(ui: Ui, *lines: str, body: str = "") -> str:
    """The status line that an unusual request is answered with."""
    request = "\r\n".join([*lines, f"Content-Length: {len(body)}", "Connection: close", "", body])
    with socket.create_connection(("127.0.0.1", ui.port), timeout=HANGS_S) as connection:
        connection.sendall(request.encode())
        return connection.makefile("rb").readline().decode().strip()


@pytest.mark.attack
def test_a_program_of_this_machine_may_do_what_the_ui_may(ui: Ui) -> None:
    before = ui.launched()
    assert (
        requests.post(ui.api, json={"query": launch("program")}, timeout=HANGS_S).json()["data"]["launchRun"][
            "__typename"
        ]
        == "LaunchRunSuccess"
    )
    assert ui.launched() == sorted([*before, "program"])
    for origin in (None, Origin(ui.url)):
        with connect(ui.api.replace("http", "ws"), origin=origin, subprotocols=[GRAPHQL_WS]) as connection:
            connection.send('{"type": "connection_init"}')
            assert json.loads(connection.recv(60)) == {"type": "connection_ack"}


def test_requests_out_of_the_ordinary_launch_nothing(ui: Ui) -> None:
    before = ui.launched()
    query, host = f"/graphql?query={quote(launch('raw'))}", f"Host: 127.0.0.1:{ui.port}"
    body, is_json = json.dumps({"query": launch("raw")}), "Content-Type: application/json"
    for lines in (
        (f"GET {query} HTTP/1.1", host),
        (f"GET {query} HTTP/1.0",),
        (f"GET {ui.url}{query} HTTP/1.1", host),
        (f"GET http://{EVIL}{query} HTTP/1.1", f"Host: {EVIL}"),
        (f"GET {query.replace('graphql', '%67raphql')} HTTP/1.1", host),
        (f"HEAD {query} HTTP/1.1", host),
        (f"GET {query} HTTP/1.1", host, "Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c"),
        (f"CONNECT 127.0.0.1:{ui.port} HTTP/1.1", host),
        ("POST /graphql HTTP/1.0", is_json),
        ("POST /graphql HTTP/1.1", host, host, is_json),
        ("POST /graphql HTTP/1.1", f"Host: {EVIL}", f"X-Forwarded-Host: 127.0.0.1:{ui.port}", is_json),
        ("POST /graphql HTTP/1.1", host.lower(), "ORIGIN: http://evil.example", is_json),
        ("POST /graphql HTTP/1.1", host, f"Origin: {ui.url}", "Origin: null", is_json),
        ("POST /graphql HTTP/1.1", host, "Content-Type: application/graphql"),
        ("POST /graphql HTTP/1.1", host, is_json, "Content-Type: text/plain"),
        ("POST /report_asset_materialization/source/contacts HTTP/1.1", host),
    ):
        assert " 40" in raw(ui, *lines, body="" if lines[0].startswith(("GET", "HEAD")) else body), lines
    for origin, name in (
        (f"http://{EVIL}", "127.0.0.1"),
        ("null", "127.0.0.1"),
        (f"http://localhost:{ui.port}", "127.0.0.1"),
    ):
        with pytest.raises(InvalidStatus, match="403"):
            connect(f"ws://{name}:{ui.port}/graphql", origin=Origin(origin), subprotocols=[GRAPHQL_WS])
    assert ui.launched() == before


@pytest.mark.parametrize(
    "path", ["/", "/graphql", "/server_info", "/favicon.png", "/logs/a/b.err", "/graphql?query={version}"]
)
def test_no_response_may_be_framed_or_read_by_other_pages(ui: Ui, path: str) -> None:
    told = requests.get(ui.url + path, headers={"Accept": "text/html"}, timeout=HANGS_S).headers
    assert "frame-ancestors 'none'" in told["Content-Security-Policy"]
    assert (told["X-Frame-Options"], told["X-Content-Type-Options"]) == ("DENY", "nosniff")
    assert (told["Cross-Origin-Resource-Policy"], told["Cross-Origin-Opener-Policy"]) == (
        "same-origin",
        "same-origin",
    )
    assert "Access-Control-Allow-Origin" not in told


def test_the_report_is_served_alone_and_read_only(ui: Ui) -> None:
    page = report_of(ui.home)
    page.parent.mkdir(exist_ok=True)
    page.unlink(missing_ok=True)
    address = f"{ui.url}/report"
    assert requests.get(address, timeout=HANGS_S).status_code == 404
    page.write_text("<title>Report</title><script>fetch('/graphql')</script>")
    page.with_name("beside.html").write_text("beside")
    found = requests.get(address, timeout=HANGS_S)
    assert found.text == page.read_text()
    assert "default-src 'none'" in found.headers["Content-Security-Policy"], "no script of it runs"
    assert "; sandbox" in found.headers["Content-Security-Policy"], "it is a page of no address"
    assert "frame-ancestors 'none'" in found.headers["Content-Security-Policy"]
    assert requests.post(address, json={}, timeout=HANGS_S).status_code == 405
    host = f"Host: 127.0.0.1:{ui.port}"
    assert " 403 " in raw(ui, "GET /report HTTP/1.1", f"Host: {EVIL}:{ui.port}")
    assert " 403 " in raw(ui, "GET /report HTTP/1.1", host, f"Origin: http://{EVIL}")
    assert " 403 " in raw(ui, "DELETE /report HTTP/1.1", host)
    for path in (
        "/report/beside.html",
        "/report/../version",
        "/report/%2e%2e/version",
        "/report//index.html",
    ):
        prepared = requests.Request("GET", ui.url).prepare()
        prepared.url = ui.url + path  # as it is written
        with requests.Session() as session:
            assert ">Dagster</title>" in session.send(prepared, timeout=HANGS_S).text, path


# -- in a browser


@needs_browser
def test_the_report_is_a_click_away_from_its_asset(tab: Browser, ui: Ui) -> None:
    page = report_of(ui.home)
    page.parent.mkdir(exist_ok=True)
    page.write_text("<title>Our report</title>")
    tab.open(f"{ui.url}/assets/report")
    tab.wait_for("[...document.links].some((link) => link.innerText == 'Open the report')")
    tab.run("[...document.links].find((link) => link.innerText == 'Open the report').target = '', 0")
    tab.run("[...document.links].find((link) => link.innerText == 'Open the report').click(), 0")
    tab.wait_for("document.title == 'Our report'")


@needs_browser
def test_the_attacks_reach_a_server_that_is_not_guarded(tab: Browser, elsewhere: Elsewhere) -> None:
    """All but JSON, which a browser sends elsewhere only with permission: else the next test is empty."""
    tab.open(f"http://localhost:{elsewhere.port}/")
    ways = attack(tab, f"http://127.0.0.1:{elsewhere.port}", "control").keys()

    def reached() -> set[str]:
        return {way for way in ways if any(f"control {way}" in each for each in elsewhere.received)}

    wait_until(lambda: reached() >= ways - {"fetch json"}, "a beacon leaves when the browser has time for it")
    assert reached() == ways - {"fetch json"}


@needs_browser
@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", EVIL])
def test_no_page_of_another_address_launches_or_reads_anything(
    tab: Browser, ui: Ui, elsewhere: Elsewhere, host: str
) -> None:
    before = ui.launched()
    tab.open(f"http://{host}:{elsewhere.port}/")
    seen = attack(tab, ui.url, host)
    assert ui.launched() == before
    assert seen["websocket"] == "error"
    assert [saw for saw in seen.values() if "200" in saw or "data" in saw] == []


@needs_browser
def test_a_page_whose_address_was_pointed_here_launches_nothing(
    tab: Browser, ui: Ui, elsewhere: Elsewhere
) -> None:
    """DNS rebinding: for the browser the UI is then the page's own server."""
    before = ui.launched()
    tab.open(f"http://{EVIL}:{ui.port}/")
    assert "Refused: it does not name this server" in tab.run("document.body.innerText")
    tab.run(Path(__file__).with_name("attack_page.js").read_text() + "; 0")
    attack(tab, f"http://{EVIL}:{ui.port}", "rebinding")
    assert ui.launched() == before


@needs_browser
def test_a_link_from_elsewhere_opens_the_ui_but_fills_in_nothing(
    tab: Browser, ui: Ui, elsewhere: Elsewhere
) -> None:
    before = ui.launched()
    tab.open(f"http://localhost:{elsewhere.port}/")
    tab.run(f"location.href = '{ui.url}/runs', 0")
    tab.wait_for("document.title.startsWith('Runs')")
    for address in ("/runs?q=1", f"/graphql?query={quote(launch('link'))}"):
        tab.open(f"http://localhost:{elsewhere.port}/")
        tab.run(f"location.href = {json.dumps(ui.url + address)}, 0")
        tab.wait_for("document.body.innerText.startsWith('Refused')")
    assert ui.launched() == before


@needs_browser
@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_the_ui_itself_works(tab: Browser, ui: Ui, host: str) -> None:
    tab.open(f"http://{host}:{ui.port}/assets")
    tab.wait_for("document.body.innerText.includes('Never materialized')")
    before = ui.launched()
    options = (
        "{method: 'POST', headers: {'content-type': 'application/json'}, body: JSON.stringify({query: ("
        + LAUNCH
        + ")('own')})}"
    )
    assert (
        tab.run(f"fetch('/graphql', {options}).then((answer) => answer.text())")
        == '{"data":{"launchRun":{"__typename":"LaunchRunSuccess"}}}'
    )
    assert ui.launched() == sorted([*before, "own"])
    opening = (
        f"new Promise((done) => {{ const it = new WebSocket('ws://{host}:{ui.port}/graphql', "
        "'graphql-ws'); "
        "it.onerror = done;"
    )
    assert tab.run(
        opening + 'it.onopen = () => it.send(\'{"type": "connection_init"}\'); it.onmessage = (told) => '
        "done(told.data) })"
    ) == ('{"type":"connection_ack"}')
