"""A signal ends the process within 15 seconds, whatever its threads wait for, and loses nothing."""

import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from home import exits
from tests.waiting import HANGS_S

_WORK = """
    import re, socket, sys, threading

    from home import interrupts

    def in_a_pattern(stop):
        re.search("(a+)+b", "a" * 60)

    def in_a_lock(stop):
        lock = threading.Lock()
        with lock:
            lock.acquire()

    def in_a_query(stop):
        import duckdb, os
        os.mkfifo(sys.argv[3])
        duckdb.sql(f"from read_csv('{sys.argv[3]}')").fetchall()  # nobody writes into it

    def in_a_request(stop):
        import requests
        server = socket.create_server(("127.0.0.1", 0))
        requests.get("http://127.0.0.1:%d/" % server.getsockname()[1])

    def work(stop):
        stop.call_on_stop(lambda: None)
        print("begun", flush=True)
        globals()[sys.argv[1]](stop)

    with interrupts.end_at_once():
        try:
            interrupts.run_stoppable(work) if sys.argv[2] == "beside" else work(interrupts.Stop())
        except KeyboardInterrupt:
            sys.exit(130)
"""
#: In a pattern, the main thread looks for signals by itself.
_CASES = [("in_a_pattern", "alone")]
_CASES += [(work, "beside") for work in ("in_a_lock", "in_a_query", "in_a_request")]


@pytest.mark.slow
def test_a_signal_ends_the_process_within_15_seconds(tmp_path: Path) -> None:
    code, signals = textwrap.dedent(_WORK), (signal.SIGTERM, signal.SIGINT)
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    running = {
        (number, *case): subprocess.Popen(
            [sys.executable, "-c", code, *case, str(tmp_path / f"{number}")], **pipes
        )
        for number in signals
        for case in _CASES
    }
    try:
        for process in running.values():
            assert process.stdout is not None
            assert process.stdout.readline() == b"begun\n"
        time.sleep(1)  # until it is inside
        for (number, *_), process in running.items():
            process.send_signal(number)
        ended = {case: process.wait(HANGS_S) for case, process in running.items()}
    finally:
        for process in running.values():
            process.kill()
            process.communicate()
    assert ended == dict.fromkeys(running, exits.INTERRUPTED)
