"""The command line of the sandbox: its options, starting it, and starting it as a child process.

The options for switches follow from their declarations. Not here: what they do.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import datetime as dt
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from marketing_api.sandbox.faults import FAULTS, read_chance
from marketing_api.sandbox.options import DEFAULT_KEY, AccountOptions, Options, build
from marketing_api.sandbox.server import Server, run_until
from marketing_api.sandbox.switches import AS_OBSERVED, RATE_OBSERVED, RATE_SPECIFIED, SWITCHES

_EXAMPLE = "0.02@emailmarketing/getcoupon,goal/show"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Every option of the sandbox."""
    parser.usage = f"{parser.prog} [--port P] [--contacts N] [--now TIME] [options]"  # the generated one takes sixty lines
    _add_account(parser)
    parser.add_argument("--port", type=_whole(0, 65_535), default=0, help="port on 127.0.0.1 (default: any free one)")
    limits = f"{RATE_SPECIFIED}, with --as-observed {RATE_OBSERVED}"
    parser.add_argument("--rate-limit", type=_whole(0), help=f"requests a second and key; 0: no limit (default: {limits})")
    parser.add_argument("--latency-ms", type=_pair, default=(0.0, 0.0), metavar="MEDIAN,P99", help="log-normal delay of answers")
    parser.add_argument("--jitter-ms", type=_pair, default=(0.0, 0.0), metavar="MEDIAN,P99", help="delay before a request is counted")
    parser.add_argument("--parent", type=int, help="end when the process with this id is no longer the parent")
    _add_faults(parser.add_argument_group("faults", f"each takes a probability, for some operations if wanted: {_EXAMPLE}"))
    parser.add_argument(
        "--as-observed", action="store_true", help=f"set switches to what clients of the live service have met: {_said(AS_OBSERVED)}"
    )
    _add_switches(
        parser.add_argument_group("switches", "behave as observed instead of as specified (rows of the observations in brackets)")
    )


def _add_account(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--key", default=DEFAULT_KEY, help="the key that is accepted (default: %(default)s)")
    add("--seed", type=int, default=1, help="which account (default: %(default)s)")
    add("--contacts", type=_whole(1), default=600, help="how many contacts it shows at its start (default: %(default)s)")
    add("--now", type=_moment, help="let the clock stand still at this UTC time, like 2026-11-01T03:00 (default: the present)")
    add("--timezone", type=_zone, default="UTC", help="the account's time zone (default: %(default)s)")
    add("--account", action="append", type=_account, default=[], metavar="NAME=KEY:SEED:CONTACTS", help="one of several accounts")
    add("--state", type=Path, metavar="FILE", help="journal of writes, replayed at start")


def _add_faults(group: argparse._ArgumentGroup) -> None:
    for fault in FAULTS:
        group.add_argument(f"--fault-{fault.name}", type=_chance, metavar="P[@OPERATIONS]", help=fault.doc, dest=f"fault_{fault.name}")
    group.add_argument("--fault-seed", type=int, default=1, help="which requests are hit (default: %(default)s)")
    group.add_argument("--stall-seconds", type=float, default=60.0, help="how long a stalled answer takes (default: %(default)s)")
    group.add_argument("--revoke-after", type=_whole(0), default=0, metavar="N", help="the key stops working after so many requests")


def _add_switches(group: argparse._ArgumentGroup) -> None:
    for switch in SWITCHES:
        about = f"{switch.doc} (default: {switch.default})" + (f" [{switch.row}]" if switch.row != "–" else "")
        metavar = "{" + ",".join(switch.choices) + "}" if switch.choices else "N"
        group.add_argument(f"--{switch.name}", type=switch.check, metavar=metavar, help=about, dest=f"switch_{switch.name}")


def options_from(arguments: argparse.Namespace) -> Options:
    given = vars(arguments)
    return Options(
        port=arguments.port,
        key=arguments.key,
        seed=arguments.seed,
        contacts=arguments.contacts,
        now=arguments.now,
        timezone=arguments.timezone,
        rate_limit=_rate(arguments),
        switches=(dict(AS_OBSERVED) if arguments.as_observed else {})
        | {switch.name: given[f"switch_{switch.name}"] for switch in SWITCHES if given.get(f"switch_{switch.name}") is not None},
        faults={fault.name: given[f"fault_{fault.name}"] for fault in FAULTS if given.get(f"fault_{fault.name}") is not None},
        fault_seed=arguments.fault_seed,
        stall_seconds=arguments.stall_seconds,
        revoke_after=arguments.revoke_after,
        latency_ms=arguments.latency_ms,
        jitter_ms=arguments.jitter_ms,
        state=arguments.state,
        accounts=tuple(arguments.account),
    )


def _rate(arguments: argparse.Namespace) -> int:
    if arguments.rate_limit is not None:
        return int(arguments.rate_limit)
    return RATE_OBSERVED if arguments.as_observed else RATE_SPECIFIED


def _said(switches: Mapping[str, str]) -> str:
    return ", ".join([f"rate-limit {RATE_OBSERVED}", *(f"{name} {value}" for name, value in switches.items())])


def _whole(least: int, most: int | None = None) -> Callable[[str], int]:
    def read(text: str) -> int:
        if not text.isdecimal() or int(text) < least or (most is not None and int(text) > most):
            allowed = f"from {least} to {most:,}" if most is not None else f"from {least} on"
            raise argparse.ArgumentTypeError(f"{text!r} is not a whole number {allowed}")
        return int(text)

    return read


def _moment(text: str) -> int:
    return int(dt.datetime.fromisoformat(text).replace(tzinfo=dt.UTC).timestamp())


def _zone(text: str) -> str:
    """ValueError (and so an error of usage) when there is no such zone."""
    try:
        return ZoneInfo(text).key
    except ZoneInfoNotFoundError:
        raise ValueError(text) from None


def _pair(text: str) -> tuple[float, float]:
    median, _, p99 = text.partition(",")
    return float(median), float(p99 or median)


def _chance(text: str) -> str:
    read_chance(text)
    return text


def _account(text: str) -> AccountOptions:
    name, _, rest = text.partition("=")
    key, seed, contacts = rest.split(":")
    return AccountOptions(name, key, int(seed), _whole(1)(contacts))


def run(options: Options, parent: int | None = None) -> int:
    """Serve until Ctrl-C, a termination, or the end of the parent; returns the exit code."""
    app = build(options)
    accounts = options.accounts or (AccountOptions("main", options.key, options.seed, options.contacts),)

    def started(url: str) -> None:
        print(f"sandbox listens at {url}", flush=True)
        for account in accounts:
            print(f"  account {account.name}: key {account.key}, {account.contacts} contacts, seed {account.seed}", flush=True)

    async def main() -> None:
        stop = asyncio.Event()
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGTERM, stop.set)
        if parent:
            signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches parent and child: the parent may still need answers
            _end_with(parent, lambda: loop.call_soon_threadsafe(stop.set))
        else:
            loop.add_signal_handler(signal.SIGINT, stop.set)
        await run_until(Server(app, options), stop, started)

    try:
        asyncio.run(main())
    except OSError as problem:
        why = os.strerror(problem.errno or 0)
        print(f"port {options.port} of this machine cannot be had ({why}); --port takes another", file=sys.stderr)
        return 2
    return 0


def _end_with(parent: int, end: Callable[[], object]) -> None:
    """Watch from a thread of its own, so that a loop busy with a long answer cannot outlive the parent either."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(0.5)
        end()
        time.sleep(3)
        os._exit(1)  # every journalled line is flushed already

    threading.Thread(target=watch, name="parent", daemon=True).start()


@contextlib.contextmanager
def spawn(*arguments: str) -> Iterator[str]:
    """A sandbox in a child process for the length of a `with`; yields its base address. The child dies with this process."""
    command = [sys.executable, "-m", "marketing_api.sandbox", "--parent", str(os.getpid()), *arguments]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)  # noqa: S603 - our own module
    assert child.stdout is not None
    try:
        line = child.stdout.readline()
        if not line:
            raise RuntimeError(f"the sandbox did not start (exit code {child.wait()})")
        yield line.split()[-1]
    finally:
        child.terminate()
        child.wait()
        child.stdout.close()


def parser() -> argparse.ArgumentParser:
    found = argparse.ArgumentParser(prog="marketing-sync sandbox", description="A stand-in for the service, on the loopback only.")
    add_arguments(found)
    return found


def main(argv: Sequence[str] | None = None) -> int:
    arguments = parser().parse_args(argv)
    return run(options_from(arguments), arguments.parent)
