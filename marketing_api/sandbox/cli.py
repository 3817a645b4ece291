"""Starting the sandbox as a program (`main`, `run`), and as a child process (`spawn`)."""

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence

import click

from marketing_api.sandbox.options import Options, command
from marketing_api.sandbox.server import Server


def run(options: Options, parent: int | None = None) -> int:
    """Serve until Ctrl-C, a termination, or the end of the parent; returns the exit code."""
    server = Server(options)

    async def serve() -> None:
        stop, loop = asyncio.Event(), asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGTERM, stop.set)
        if parent:
            signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches parent and child: the parent may still need responses
            _end_with(parent, lambda: loop.call_soon_threadsafe(stop.set))
        else:
            loop.add_signal_handler(signal.SIGINT, stop.set)
        async with server.listening() as url:
            print(f"sandbox listens at {url}", flush=True)
            for account in options.every_account:
                print(f"  account {account.name}: key {account.key}, {account.contacts} contacts, seed {account.seed}", flush=True)
            await stop.wait()

    try:
        asyncio.run(serve())
    except OSError as problem:
        why = os.strerror(problem.errno or 0)
        print(f"port {options.port} of this machine cannot be had ({why}); --port takes another", file=sys.stderr)
        return 2
    return 0


def _end_with(parent: int, end: Callable[[], object]) -> None:
    """Watch from a thread of its own, so that a loop busy with a long response cannot outlive the parent either."""

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
    words = [sys.executable, "-m", "marketing_api.sandbox", "--parent", str(os.getpid()), *arguments]
    child = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)  # noqa: S603 - our own module
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


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code, 2 for wrong usage."""
    try:
        return int(command(run).main(argv, "marketing-sync sandbox", standalone_mode=False) or 0)
    except click.ClickException as problem:
        problem.show()
        return problem.exit_code
