"""A second loopback server of the service's interface, written from the specification by somebody who has not
seen the sandbox.

Belongs here: HTTP, the envelope, the key, and faults on the wire. The answers are in `answers`.

    python -m tests.independent.server --contacts 60 --seed 1 --limit 15
"""

import argparse
import contextlib
import json
import random
import re
import socket
import struct
import sys
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from . import answers_email, answers_reputation, answers_social  # noqa: F401 (they register their operations)
from .account import Account
from .answers import READS, World
from .generate import Sizes, account
from .limits import Asked, Chance, Log, Window
from .shape import Params, ServiceFault
from .variants import Variants

HTML = (
    b"<!DOCTYPE html><html><head><title>502 Bad Gateway</title></head><body><h1>Bad "
    b"Gateway</h1></body></html>"
)


class Service:
    """Everything but the sockets: from a request to (status, headers, body)."""

    def __init__(self, made: Account, variants: Variants, limit: int, seed: int) -> None:
        rng = random.Random(seed)
        self.account = made
        self.variants = variants
        self.world = World(made, variants)
        self.log = Log()
        self.window = Window(limit, variants, rng.random())
        self.chance = Chance(variants.faults, rng)
        self.url = ""
        self.closing = threading.Event()
        self._lock = threading.Lock()

    def answer(self, operation: str, params: Params) -> tuple[int, dict[str, str], bytes, str]:
        """The whole answer, and the fault that the wire is to commit on it ("" for none)."""
        at, key = time.time(), str(params.pop("key", "") or params.pop("api_key", ""))
        shown = {
            name: json.dumps(value) if isinstance(value, dict | list) else str(value)
            for name, value in params.items()
        }
        fault = self.chance.draw(operation, shown)
        window, is_within, report = self.window.enter(pretend_full=fault == "429")
        if not is_within:
            status, data, is_ok = 429, {"errorCode": 429, "errorMessage": "Too many requests"}, False
        else:
            status, data, is_ok = self._data(operation, params, key)
        body = json.dumps(self._envelope(data, report, is_ok), ensure_ascii=bool(window % 2)).encode()
        if is_within and fault in ("500", "502-html", "200-html", "empty"):
            status, body = {
                "500": (500, b"Internal Server Error"),
                "502-html": (502, HTML),
                "200-html": (200, HTML),
                "empty": (200, b""),
            }[fault]
        with self._lock:
            self.log.entries.append(
                Asked(
                    operation,
                    tuple(sorted(shown.items())),
                    at,
                    window,
                    status,
                    fault if is_within or fault == "429" else "",
                    is_within,
                )
            )
        headers = {"Content-Type": "text/html" if body is HTML else self.variants.content_type}
        if self.variants.rate_headers:
            headers |= {f"x-rate-limit-{name}": str(value) for name, value in report.items()}
        return status, headers, body, fault if is_within else ""

    def _data(self, operation: str, params: Params, key: str) -> tuple[int, dict[str, Any], bool]:
        v = self.variants
        if key != self.account.key:
            status = 401 if v.bad_key == 1000 else v.error_status
            return status, {"errorCode": v.bad_key, "errorMessage": "Cannot find the requested action"}, False
        if operation in v.broken:
            return 500, {"errorCode": 500, "errorMessage": "Internal error"}, False
        action = READS.get(operation)
        try:
            if action is None or operation in v.missing:
                raise ServiceFault(v.missing_code, "Cannot find the requested action")
            return 200, action(self.world, params), True
        except ServiceFault as refusal:
            return v.error_status, {"errorCode": refusal.code, "errorMessage": str(refusal)}, False

    def _envelope(self, data: dict[str, Any], report: dict[str, int], is_ok: bool) -> dict[str, Any]:
        v = self.variants
        rate = {
            "rate-limit": {name: str(value) for name, value in report.items()} if v.rate_strings else report
        }
        places = {
            place: rate if v.rate_place == place else {} for place in ("top", "response", "header", "data")
        }
        if is_ok and not v.envelope:
            return data | (rate if v.rate_place != "none" else {})
        header: dict[str, Any] = {"status": "ok" if is_ok else "error", "dataType": "array"}
        if is_ok:
            header["limit"] = self.world.shape.num(self.window.limit)
        header |= places["header"]
        return {"response": {"header": header, "data": data | places["data"]} | places["response"]} | places[
            "top"
        ]


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1
    server: "_Server"

    def handle_one_request(self) -> None:
        with contextlib.suppress(ConnectionError, TimeoutError, ValueError):
            super().handle_one_request()
            return
        self.close_connection = True

    def _serve(self) -> None:
        address, body = urlsplit(self.path), self.rfile.read(int(self.headers.get("Content-Length") or 0))
        operation = re.sub(r"^/1/|\.json$", "", address.path.lower())
        params = _merge([*parse_qsl(address.query, keep_blank_values=True), *self._form(body)])
        status, headers, body, fault = self.server.service.answer(operation, params)
        if fault in ("reset", "stall"):
            self._vanish(self.server.service.variants.stall_seconds if fault == "stall" else 0)
            return
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        short = body[: len(body) * 2 // 3] if fault == "cut" else body
        # Half of the cut answers look whole to HTTP: only the JSON shows it.
        looks_whole = fault == "cut" and len(body) % 2
        self.send_header("Content-Length", str(len(short) if looks_whole else len(body)))
        self.end_headers()
        self.wfile.write(short)
        self.wfile.flush()
        self.close_connection = self.close_connection or fault == "cut"

    do_GET = do_POST = do_DELETE = do_PUT = _serve  # noqa: N815 (any verb, row 13)

    def _form(self, body: bytes) -> list[tuple[str, Any]]:
        if "json" in (self.headers.get("Content-Type") or ""):
            sent = json.loads(body or b"{}")
            return list(sent.items()) if isinstance(sent, dict) else []
        return list(parse_qsl(body.decode("utf-8", "replace"), keep_blank_values=True))

    def _vanish(self, after: float) -> None:
        self.server.service.closing.wait(after)
        self.close_connection = True
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.connection.close()

    def log_message(self, format: str, *args: object) -> None:
        """The key stands in the request line: nothing is printed."""


def _merge(pairs: list[tuple[str, Any]]) -> Params:
    """Names trimmed and in lower case (row 10); `fields[12]=v` becomes a map, `tagname[]=a` a list."""
    params: Params = {}
    for name, value in pairs:
        base, _, inner = name.strip().partition("[")
        base, inner = base.strip().lower(), inner.rstrip("]")
        if "[" in name and inner:
            params.setdefault(base, {})[inner] = value
        elif "[" in name:
            params.setdefault(base, []).append(value)
        else:
            params[base] = value
    return params


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 128
    service: Service

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that hangs up is no news; anything else is a fault of this server and must be seen."""
        if not isinstance(sys.exception(), ConnectionError | TimeoutError):
            super().handle_error(request, client_address)


@contextlib.contextmanager
def serve(
    made: Account,
    variants: Variants = Variants(),  # noqa: B008
    *,
    limit: int = 500,
    seed: int = 1,
    port: int = 0,
) -> Iterator[Service]:
    """Serve the account on 127.0.0.1 while the context lasts; `service.url` is the base address with `/1`."""
    service = Service(made, variants, limit, seed)
    server = _Server(("127.0.0.1", port), _Handler)
    server.service = service
    service.url = f"http://127.0.0.1:{server.server_address[1]}/1"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield service
    finally:
        service.closing.set()
        server.shutdown()
        server.server_close()
        thread.join(5)


def main() -> None:
    parser = argparse.ArgumentParser(description="Serve a random account on 127.0.0.1 until interrupted.")
    for name, default in (("--port", 8090), ("--contacts", 60), ("--seed", 1), ("--limit", 15)):
        parser.add_argument(name, type=int, default=default)
    chosen = parser.parse_args()
    made = account(chosen.seed, Sizes(contacts=chosen.contacts))
    with (
        serve(made, limit=chosen.limit, seed=chosen.seed, port=chosen.port) as service,
        contextlib.suppress(KeyboardInterrupt),
    ):
        print(f"MARKETING_API_URL={service.url} MARKETING_API_KEY={made.key}", flush=True)
        threading.Event().wait()


if __name__ == "__main__":
    main()
