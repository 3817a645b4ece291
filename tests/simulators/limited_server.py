"""A bare HTTP server that does nothing but count requests against a limit: what pacing and the client are
measured against.

    python -m tests.simulators.limited_server --limit 15 --windows fixed

Prints its address, serves until its standard input ends, then prints what it counted as JSON.
"""

import argparse
import asyncio
import contextlib
import json
import math
import random
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from tests.marketing_api.simulated_service import Bucket, FromFirst, Grid, Sliding, lognormal

WINDOWS: dict[str, type[Grid]] = {"fixed": Grid, "following": FromFirst, "sliding": Sliding, "bucket": Bucket}


@dataclass(frozen=True)
class Delays:
    """Seconds as (median, 99th percentile): before a request is counted, and until it is answered."""

    arrival: tuple[float, float] = (0.020, 0.060)
    latency: tuple[float, float] = (0.120, 0.600)


class _Connection(asyncio.Protocol):
    def __init__(self, answer: Callable[[Callable[[bytes], None]], None]) -> None:
        self._answer = answer
        self._received = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._received += data
        if self._received.endswith(b"\r\n\r\n"):
            self._received = b""
            self._answer(self._transport.write)  # type: ignore[attr-defined]


class Counter:
    """Counts, delays and answers."""

    def __init__(self, service: Grid, delays: Delays | None) -> None:
        self.service = service
        self.accepted = self.refused = 0
        self.first_at = self.last_at = 0.0
        self._delays = delays
        self._chance = random.Random(1)

    def receive(self, send: Callable[[bytes], None]) -> None:
        if self._delays is None:
            send(self._count())
            return
        arrival = lognormal(self._chance, *self._delays.arrival)
        latency = max(arrival, lognormal(self._chance, *self._delays.latency))
        loop = asyncio.get_running_loop()
        loop.call_later(arrival, lambda: loop.call_later(latency - arrival, send, self._count()))

    def _count(self) -> bytes:
        told = self.service.arrive(time.time())
        self.last_at = time.monotonic()
        self.first_at = self.first_at or self.last_at
        self.refused += told.reached
        self.accepted += not told.reached
        rate: dict[str, float | None] = {
            "limit": told.limit,
            "requests": told.requests,
            "remaining": told.remaining,
            "reached": int(told.reached),
        }
        rate |= {"reset": math.ceil(told.reset or 0), "after": told.after}
        header = {"status": "error" if told.reached else "ok", "dataType": "array"}
        data = (
            {"errorCode": 429, "errorMessage": "slow down"}
            if told.reached
            else {"business": {"businessName": "Harbor"}}
        )
        body = json.dumps({"response": {"header": header, "data": data}, "rate-limit": rate}).encode()
        status = b"429 Too Many Requests" if told.reached else b"200 OK"
        return b"HTTP/1.1 %b\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%b" % (
            status,
            len(body),
            body,
        )


async def _serve(counter: Counter) -> None:
    server = await asyncio.get_running_loop().create_server(
        lambda: _Connection(counter.receive), "127.0.0.1", 0, backlog=512
    )
    print(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/1", flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    server.close()
    print(
        json.dumps(
            {
                "accepted": counter.accepted,
                "refused": counter.refused,
                "seconds": counter.last_at - counter.first_at,
            }
        ),
        flush=True,
    )


@contextlib.contextmanager
def serving(*arguments: str) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """The server as a child process: its address, and the process to pass to `counted` when done."""
    command = [sys.executable, "-m", "tests.simulators.limited_server", *arguments]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().strip(), process
        finally:
            process.kill()


def counted(process: subprocess.Popen[str]) -> dict[str, float]:
    """End the server and return what it counted: accepted, refused, seconds."""
    output, _ = process.communicate("")
    result: dict[str, float] = json.loads(output)
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description="Count requests on 127.0.0.1.")
    parser.add_argument("--limit", type=int, default=15)
    parser.add_argument("--windows", choices=WINDOWS, default="fixed")
    parser.add_argument("--no-delays", action="store_true", help="count and answer at once")
    chosen = parser.parse_args()
    service = WINDOWS[chosen.windows](limit=chosen.limit, offset=random.random())
    asyncio.run(_serve(Counter(service, None if chosen.no_delays else Delays())))


if __name__ == "__main__":
    main()
