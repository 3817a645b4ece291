"""The server on its socket: keep-alive, delays, mishaps, streaming, control paths, start and end."""

import contextlib
import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from marketing_api.sandbox.app import App
from marketing_api.sandbox.options import RATE_OBSERVED, Options, make_command
from marketing_api.sandbox.server import main, spawn
from tests.dialects.app import AccountOptions, RoughApp
from tests.dialects.app import Options as RoughOptions
from tests.dialects.server import serve
from tests.marketing_api.sandbox.asking import NOW, fetch, read
from tests.waiting import HANGS_S, wait_until


def options(**changes: Any) -> Options:
    return Options(**{"contacts": 200, "now": NOW, "rate_limit": 0, **changes})


def connect(url: str) -> contextlib.closing[http.client.HTTPConnection]:
    return contextlib.closing(
        http.client.HTTPConnection("127.0.0.1", int(url.rsplit(":", 1)[1].split("/")[0]), timeout=HANGS_S)
    )


def control(url: str, path: str) -> Any:
    with urllib.request.urlopen(f"{url.removesuffix('/1')}/sandbox/{path}", timeout=HANGS_S) as answer:
        return json.load(answer)


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with serve(options(), App) as url:
        yield url


def test_connection_is_kept_and_reused(url: str) -> None:
    with connect(url) as connection:
        connection.connect()
        first = connection.sock
        for _ in range(5):
            connection.request("GET", "/1/app/me?key=sandbox-key")
            assert connection.getresponse().read()
            assert connection.sock is first
        connection.request("GET", "/1/app/me?key=sandbox-key", headers={"connection": "close"})
        assert connection.getresponse().read()
        assert connection.sock is None


def test_requests_sent_in_pieces_or_all_at_once_are_answered_in_order(url: str) -> None:
    request = (
        b"POST /1/app/me HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 21\r\n\r\n"
        + b'{"key":"sandbox-key"}'
    )
    with socket.create_connection(
        ("127.0.0.1", int(url.split(":")[2].split("/")[0])), timeout=HANGS_S
    ) as client:
        for place in range(0, len(request), 40):
            client.sendall(request[place : place + 40])
            time.sleep(0.002)
        client.sendall(request + request)
        received = b""
        while received.count(b'"businessName"') < 3:
            received += client.recv(65536)
    assert received.count(b"HTTP/1.1 200 OK") == 3


def test_broken_request_is_refused_and_the_connection_closed(url: str) -> None:
    with socket.create_connection(
        ("127.0.0.1", int(url.split(":")[2].split("/")[0])), timeout=HANGS_S
    ) as client:
        client.sendall(b"nonsense\r\n\r\n")
        assert client.recv(65536).startswith(b"HTTP/1.1 400 ")
        assert client.recv(65536) == b""


def test_latency_delays_each_answer_but_none_of_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    slept, all_of_them = list[float](), threading.Barrier(40)
    clock = SimpleNamespace(time=time.time, sleep=lambda s: slept.append(s) or all_of_them.wait(HANGS_S))
    monkeypatch.setattr("marketing_api.sandbox.server.time", clock)
    with serve(options(latency_ms=500.0), App) as url, ThreadPoolExecutor(40) as pool:
        assert [status for status, *_ in pool.map(fetch, [url] * 40, ["app/me"] * 40)] == [200] * 40
    assert slept == [0.25] * 80


def test_latency_moves_a_request_into_a_later_window() -> None:
    with serve(options(latency_ms=2200.0, rate_limit=5), App) as url:
        began = int(time.time())
        fetch(url, "app/me")
        assert control(url, "log")["items"][0]["arrived"] >= began + 1


def test_rate_limit_holds_over_the_socket(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = SimpleNamespace(time=lambda: NOW, sleep=time.sleep)
    monkeypatch.setattr("marketing_api.sandbox.server.time", clock)
    with serve(options(rate_limit=3), App) as url, connect(url) as connection:
        statuses = []
        for _ in range(25):
            connection.request("GET", "/1/app/me?key=sandbox-key")
            answer = connection.getresponse()
            answer.read()
            statuses.append(answer.status)
    assert statuses == [200] * 3 + [429] * 22


@pytest.mark.parametrize(
    ("fault", "problem"),
    [
        ("reset", ConnectionResetError),
        ("lost-answer", http.client.RemoteDisconnected),
        ("cut-body", http.client.IncompleteRead),
    ],
)
def test_connection_breaks_as_the_fault_says(fault: str, problem: type[Exception]) -> None:
    with serve(options(faults={fault: "1"}), RoughApp) as url, connect(url) as connection:
        connection.request("POST", "/1/goal/delete?key=sandbox-key&id=301")
        with pytest.raises(problem):
            connection.getresponse().read()
        control(url, "faults?off=1")
        assert fetch(url, "app/me")[0] == 200


def test_stalled_answer_comes_late_and_blocks_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    slept, is_over = list[float](), threading.Event()
    clock = SimpleNamespace(time=time.time, sleep=lambda s: slept.append(s) or (s and is_over.wait(HANGS_S)))
    monkeypatch.setattr("marketing_api.sandbox.server.time", clock)
    with serve(options(faults={"stall": "1@goal/lists"}, stall_seconds=1.5), App) as url:
        stalled = threading.Thread(target=fetch, args=(url, "goal/lists"))
        stalled.start()
        fetch(url, "app/me")
        assert stalled.is_alive()
        is_over.set()
        stalled.join()
    assert max(slept) == 1.5


def test_control_paths_need_no_key_and_spend_no_request() -> None:
    with serve(options(), App) as url:
        before = control(url, "log")
        assert control(url, "advance?days=2")["now"] == NOW + 2 * 86_400
        assert control(url, "faults?500-before=0.5@goal/lists") == {"500-before": "0.5@goal/lists"}
        assert control(url, "log")["requests"] == before["requests"] == 0
        with pytest.raises(urllib.error.HTTPError):
            control(url, "faults?fire=1")
        with pytest.raises(urllib.error.HTTPError):
            control(url, "nothing")


def test_log_tells_requests_without_key_and_secrets() -> None:
    with serve(options(), App) as url:
        fetch(url, "user/add", "POST", fullname="a", username="b", password="hunter2", type="user", group=801)
        fetch(url, "emailmarketing/getlist", id=1801)
        told = control(url, "log")
        assert [(one["operation"], one["status"], one["outcome"]) for one in told["items"]] == [
            ("user/add", 200, "ok"), ("emailmarketing/getlist", 200, "ok"),
        ]  # fmt: skip
        assert told["items"][1]["params"] == {"id": "1801"}
        assert "hunter2" not in json.dumps(told)
        assert "sandbox-key" not in json.dumps(told)
        assert control(url, "log?since=1")["items"] == told["items"][1:]


def test_several_accounts_are_apart() -> None:
    accounts = (AccountOptions("one", "k1", 1, 150), AccountOptions("two", "k2", 2, 300))
    with serve(RoughOptions(now=NOW, rate_limit=0, accounts=accounts), RoughApp) as url:
        names = [read(fetch(url, "app/me", key=key)[1])["business"]["id"] for key in ("k1", "k2")]
        assert len(set(names)) == 2
        assert control(url, "state?account=two")["contacts"] == 300


def test_port_in_use_is_told_at_once(url: str) -> None:
    port = int(url.split(":")[2].split("/")[0])
    with pytest.raises(OSError, match="in use"), serve(options(port=port), App):
        pass


def test_port_in_use_is_wrong_usage_with_the_way_out(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    port = url.split(":")[2].split("/")[0]
    assert main(["--port", port]) == 2
    assert (
        f"port {port} is unavailable (Address already in use); choose another with --port"
        in capsys.readouterr().err
    )


def test_server_ends_with_the_with_and_can_start_again() -> None:
    with serve(options(), App) as first:
        fetch(first, "app/me")
    with pytest.raises(urllib.error.URLError):
        fetch(first, "app/me")
    with serve(options(port=int(first.split(":")[2].split("/")[0])), App) as second:
        assert second == first


def test_child_process_answers_and_ends() -> None:
    with spawn("--contacts", "150", "--rate-limit", "0", "--now", "2026-11-20T15:00") as url:
        assert control(url, "log")["requests"] == 0
    with pytest.raises(urllib.error.URLError):
        fetch(url, "app/me")


def test_child_dies_with_its_parent() -> None:
    code = (
        "import os,sys;from marketing_api.sandbox.server import spawn;"
        "child=spawn();print(child.__enter__(),flush=True);sys.stdin.read();os._exit(9)"
    )
    parent = subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert parent.stdout is not None
    assert parent.stdin is not None
    url = parent.stdout.readline().strip()
    assert fetch(url, "app/me")[0] == 200
    parent.stdin.close()
    parent.wait()
    parent.stdout.close()

    def is_gone() -> bool:
        try:
            fetch(url, "app/me")
        except OSError:
            return True
        return False

    wait_until(is_gone, "the sandbox outlived its parent")


def test_interrupt_ends_cleanly() -> None:
    child = subprocess.Popen(
        [sys.executable, "-m", "marketing_api.sandbox", "--contacts", "100"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert child.stdout is not None
    assert "127.0.0.1" in child.stdout.readline()
    assert "sandbox-key" in child.stdout.readline()
    os.kill(child.pid, signal.SIGINT)
    _, errors = child.communicate(timeout=HANGS_S)
    assert (child.returncode, errors) == (0, "")


def options_from(*words: str) -> Options:
    found: list[Options] = []
    make_command(lambda options, _: found.append(options) or 0).main(list(words), standalone_mode=False)
    return found[0]


def test_options_reach_the_sandbox(tmp_path: Path) -> None:
    text = (
        "--seed 4 --contacts 300 --rate-limit 10 --latency-ms 120 --state "
        f"{tmp_path / 's'} "
        "--fault-500-before 0.02@goal/lists --now 2026-11-20T15:00 "
        "--timezone Europe/Lisbon"
    )
    chosen = options_from(*text.split())
    assert (chosen.seed, chosen.contacts, chosen.rate_limit, chosen.now, chosen.timezone) == (
        4,
        300,
        10,
        NOW,
        "Europe/Lisbon",
    )
    assert chosen.latency_ms == 120.0
    assert (chosen.as_observed, chosen.faults) == (False, {"500-before": "0.02@goal/lists"})


def test_as_observed_is_one_flag() -> None:
    chosen = options_from("--as-observed")
    assert (chosen.as_observed, App(chosen).window.limit) == (True, RATE_OBSERVED)
    assert App(options_from("--as-observed", "--rate-limit", "15")).window.limit == 15


def test_options_are_few() -> None:
    assert len(make_command(lambda *_: 0).params) <= 20


@pytest.mark.parametrize(
    "text",
    [
        "--fault-stall 7",
        "--contacts 20001",
        "--now soon",
        "--contacts x",
        "--contacts -5",
        "--timezone Mars",
        "--port 70000",
    ],
)
def test_senseless_options_are_wrong_usage(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(text.split()) == 2
    assert "error: Invalid value for" in capsys.readouterr().err
