"""Sockets: HTTP/1.1 on the loopback; a sandbox in a child process (`spawn`), and as a program
(`main`).

Every connection has a thread, and a waiting response blocks nobody."""

import contextlib
import os
import signal
import socketserver
import subprocess
import sys
import threading
import time
import urllib.parse
from collections.abc import Iterator, Sequence
from http.server import BaseHTTPRequestHandler
from typing import Any

import click

from marketing_api.sandbox.app import App
from marketing_api.sandbox.control import respond_to_control
from marketing_api.sandbox.options import make_command
from marketing_api.sandbox.responses import Request, Response


class Handler(BaseHTTPRequestHandler):
    """One connection; requests are handled one after the other, as HTTP/1.1 wants."""

    protocol_version = default_request_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1  # in one piece: what is written in parts may arrive in parts
    server: "Server"

    def handle_request(self) -> None:
        path, _, query = self.path.partition("?")
        kind = self.headers.get("content-type", "")
        length = self.headers.get("content-length", "0")
        if not length.isdecimal() or "transfer-encoding" in self.headers:
            self.send_error(411)
        else:
            body = self.rfile.read(int(length))
            request = Request(self.command, urllib.parse.unquote(path), query, kind, body)
            self.write_response(self.server.respond(request))

    do_GET = do_HEAD = do_POST = do_PUT = do_DELETE = handle_request  # noqa: N815 - as the base class wants

    def write_response(self, response: Response) -> None:
        if response.mishap:
            self.close_connection = True
            return
        self.send_response_only(response.status)
        length = str(len(response.body))
        headers = [("content-type", response.kind), *response.headers, ("content-length", length)]
        for name, value in [*headers, *[("connection", "close")] * self.close_connection]:
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(response.body)

    def log_message(self, *_: Any) -> None:
        """`/sandbox/log` shows what was received."""


class Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = daemon_threads = True
    request_queue_size = 512

    def __init__(self, app: App, parent: int | None = None) -> None:
        self.app = app
        self.parent = parent
        self.lock = threading.Lock()
        super().__init__(("127.0.0.1", app.options.port), Handler)
        self.url = f"http://127.0.0.1:{self.server_address[1]}/1"

    def respond(self, request: Request) -> Response:
        """Half of the latency comes before the request counts, half after it took effect."""
        if request.path.startswith("/sandbox"):
            with self.lock:
                return respond_to_control(self.app, request, time.time())
        half_s = self.app.options.latency_ms / 2000
        time.sleep(half_s)
        with self.lock:
            response = self.app.respond(request, time.time())
        time.sleep(response.wait + half_s)
        return response

    def service_actions(self) -> None:
        if self.parent not in (None, os.getppid()):
            raise KeyboardInterrupt

    def handle_error(self, *about: Any) -> None:
        if not isinstance(sys.exception(), ConnectionError):  # the client closed the connection
            super().handle_error(*about)


def run(app: App, parent: int | None = None) -> int:
    """Serve until Ctrl-C, a termination, or the end of the parent; returns the exit code."""

    options = app.options

    def end(*_: Any) -> None:
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, end)
    # Ctrl-C reaches parent and child: the parent may still need responses.
    signal.signal(signal.SIGINT, signal.SIG_IGN if parent else end)
    try:
        with contextlib.suppress(KeyboardInterrupt), Server(app, parent) as server:
            print(f"sandbox listens at {server.url}")
            print(
                f"  key {options.key}, {options.contacts} contacts, seed {options.seed}", flush=True
            )
            server.serve_forever()
    except OSError as error:
        why = os.strerror(error.errno or 0)
        refusal = f"port {options.port} is unavailable ({why}); choose another with --port"
        print(f"marketing-sync: error: {refusal}", file=sys.stderr)
        return 2
    return 0


@contextlib.contextmanager
def spawn(*arguments: str) -> Iterator[str]:
    """A sandbox in a child process for the length of a `with`; yields its base address. The child
    dies with this process."""
    words = [
        sys.executable,
        "-m",
        "marketing_api.sandbox",
        "--parent",
        str(os.getpid()),
        *arguments,
    ]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as child:  # noqa: S603 - our own module
        assert child.stdout is not None
        try:
            line = child.stdout.readline()
            if not line:
                raise RuntimeError(f"the sandbox did not start (exit code {child.wait()})")
            yield line.split()[-1]
        finally:
            child.terminate()


def main(argv: Sequence[str] | None = None, epilog: str = "") -> int:
    """Run the command line, whose help ends with the epilog; returns the exit code, 2 for wrong
    usage."""
    try:
        command = make_command(lambda options, parent: run(App(options), parent), epilog)
        return int(command.main(argv, "marketing-sync sandbox", standalone_mode=False) or 0)
    except click.ClickException as error:
        print(f"marketing-sync: error: {error.format_message()}", file=sys.stderr)
        print("See `marketing-sync sandbox --help`.", file=sys.stderr)
        return error.exit_code
