"""A headless Chromium, driven by its DevTools protocol. Not here: what pages do in it."""

import json
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import requests
from websockets.sync.client import ClientConnection, connect

from tests.waiting import HANGS_S

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


class ProtocolError(AssertionError):
    """What the browser did not do."""


class Browser:
    """One tab."""

    def __init__(self, connection: ClientConnection) -> None:
        self._connection, self._number = connection, 0

    def call(self, method: str, **params: object) -> Any:
        """A command of the protocol, answered."""
        self._number += 1
        self._connection.send(json.dumps({"id": self._number, "method": method, "params": params}))
        while (answer := json.loads(self._connection.recv(HANGS_S))).get("id") != self._number:
            continue
        if "error" in answer:
            raise ProtocolError(answer)
        return answer["result"]

    def open(self, address: str) -> None:
        """Go there as a person does who types the address."""
        self.call("Page.navigate", url=address, transitionType="typed")
        self.wait_for(
            f"location.href.startsWith({json.dumps(address)}) && document.readyState === 'complete'"
        )

    def run(self, script: str) -> Any:
        """The value of an expression in the page; a promise is waited for."""
        answer = self.call(
            "Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True, userGesture=True
        )
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def _is_so(self, condition: str) -> bool:
        try:
            return bool(self.run(condition))
        except ProtocolError:  # the page was left while it was asked
            return False

    def wait_for(self, condition: str, patience: float = HANGS_S) -> None:
        until = time.monotonic() + patience
        while not self._is_so(condition):
            assert time.monotonic() < until, self.run("location.href + '\\n' + document.body.innerText")
            time.sleep(0.1)


@contextmanager
def browser(folder: Path, *options: str) -> Iterator[Browser]:
    """Chromium with a profile of its own in `folder`."""
    assert CHROMIUM
    always = (
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        "--no-first-run",
        "--remote-debugging-port=0",
    )
    process = subprocess.Popen(
        [CHROMIUM, *always, f"--user-data-dir={folder}", *options, "about:blank"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        with connect(
            _address(process, folder / "DevToolsActivePort"), max_size=None, proxy=None
        ) as connection:
            yield Browser(connection)
    finally:
        process.terminate()
        process.wait()


def _address(process: subprocess.Popen[bytes], ports: Path) -> str:
    """Of the first tab."""
    until = time.monotonic() + HANGS_S
    while time.monotonic() < until and process.poll() is None:
        if ports.exists() and (port := ports.read_text().partition("\n")[0]):
            tabs = requests.get(f"http://127.0.0.1:{port}/json", timeout=HANGS_S).json()
            found = [str(tab["webSocketDebuggerUrl"]) for tab in tabs if tab["type"] == "page"]
            if found:
                return found[0]
        time.sleep(0.1)
    raise AssertionError("Chromium did not start")
