"""Counts the files and functions that one row passes: what somebody has to read who follows it.

    python -m tests.benchmarks.bench_hops [push contact] [--list]

push     one row of a CSV, the tag of a contact: the dry run, then --apply, to the conclusion. Goal: 45 files, 350 functions.
contact  the first contact of a list, from its requests to its rows. Goal: 55 files, 400 functions.

Counted is each function of the project's packages, once, that runs meanwhile in the command's process, in whatever
thread. Comprehensions and lambdas are part of the function that they stand in; what runs while a module is imported
declares, and does not count. The sandbox is another process. `--list` prints the functions of each file. Exit code 1
when a goal is missed.
"""

from __future__ import annotations

import argparse
import inspect
import json
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Sequence
from pathlib import Path
from types import CodeType, FrameType
from typing import NamedTuple

from tests.pipelines.sandboxes import KEY, spawned

ROOT = Path(__file__).parents[2]
PACKAGES = ("assets", "home", "marketing_api", "pipelines", "upkeep", "warehouse", "write_back")
#: File → its functions.
Passed = dict[str, list[str]]


class Way(NamedTuple):
    """What is run before it, the commands that are counted together, and the goal."""

    before: Sequence[Sequence[str]]
    counted: Sequence[Sequence[str]]
    files: int
    functions: int


_SYNC = ("sync", "--reads-only", "--only")
_PUSH = ("push", "tags", "--from", "one.csv")
WAYS = {
    "push": Way([[*_SYNC, "business", "lists", "contacts"]], [_PUSH, [*_PUSH, "--apply"]], 45, 350),
    "contact": Way([[*_SYNC, "business", "lists"]], [[*_SYNC, "contacts", "timelines"]], 55, 400),
}
#: The sandbox's only contact, of which the row is.
_ADDRESS = "select email from source.contacts where status = 'active' order by email limit 1"


def main() -> int:
    """Exit code 1 when a goal is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("ways", nargs="*", default=list(WAYS), metavar="WAY", help=", ".join(WAYS))
    parser.add_argument("--list", action="store_true", help="print the functions of each file")
    parser.add_argument("--inside", nargs=2, metavar=("WAY", "FILE"), help=argparse.SUPPRESS)
    typed = parser.parse_args()
    if typed.inside:
        way, target = typed.inside
        Path(target).write_text(json.dumps(_passed(WAYS[way].counted)), encoding="utf-8")
        return 0
    missed = 0
    for name in typed.ways:
        way, passed = WAYS[name], _measure(name)
        count = sum(map(len, passed.values()))
        print(f"{name}: {len(passed)} files (goal {way.files}), {count} functions (goal {way.functions})")
        for file, functions in sorted(passed.items()) if typed.list else ():
            print(f"  {len(functions):3} {file}: {', '.join(functions)}")
        missed += len(passed) > way.files or count > way.functions
    return int(missed > 0)


def _measure(name: str) -> Passed:
    """What the way passes, in a process of its own and a home of its own."""
    with (
        spawned("--contacts", "1", "--rate-limit", "0") as url,
        tempfile.TemporaryDirectory() as folder,
    ):
        kept = {key: value for key, value in os.environ.items() if not key.startswith("MARKETING_")}
        there = {"MARKETING_API_URL": url, "MARKETING_API_KEY": KEY, "MARKETING_HOME": f"{folder}/home"}
        environment = kept | there | {"PYTHONPATH": str(ROOT)}

        def run(*command: str) -> None:
            typed = [sys.executable, "-m", *command]
            ran = subprocess.run(typed, cwd=folder, env=environment, capture_output=True, text=True)
            assert ran.returncode == 0, ran.stdout + ran.stderr

        for command in WAYS[name].before:
            run("marketing_sync", *command)
        if name == "push":
            Path(folder, "one.csv").write_text(f"email,tag\n{_address(folder)},vip\n", encoding="utf-8")
        run(__spec__.name, "--inside", name, f"{folder}/passed.json")
        passed: Passed = json.loads(Path(folder, "passed.json").read_text(encoding="utf-8"))
        return passed


def _address(folder: str) -> str:
    import duckdb

    with duckdb.connect(f"{folder}/home/warehouse.duckdb", read_only=True) as connection:
        found = connection.execute(_ADDRESS).fetchone()
    assert found, "the sandbox has no active contact"
    return str(found[0])


def _passed(commands: Sequence[Sequence[str]]) -> Passed:
    """The functions that run while the commands do, by file."""
    from pipelines import cli

    seen: set[CodeType] = set()
    importing: dict[
        int, int
    ] = {}  # thread → bodies of modules that it is in: what they call is declared there

    def note(frame: FrameType, event: str, _: object) -> None:
        thread, code = threading.get_ident(), frame.f_code
        if code.co_name == "<module>" and event in ("call", "return"):
            importing[thread] = importing.get(thread, 0) + (1 if event == "call" else -1)
        elif event == "call" and not importing.get(thread):
            seen.add(code)

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        codes = [cli.main(command) for command in commands]
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    assert not any(codes), f"exit codes {codes}"
    passed: dict[str, set[str]] = {}
    for code in seen:
        path, name = Path(code.co_filename), code.co_qualname
        if path.is_relative_to(ROOT) and path.relative_to(ROOT).parts[0] in PACKAGES and _is_function(code):
            passed.setdefault(str(path.relative_to(ROOT)), set()).add(name)
    return {file: sorted(names) for file, names in passed.items()}


def _is_function(code: CodeType) -> bool:
    """Not the body of a class (only functions have fast locals), and nothing in angle brackets."""
    return bool(code.co_flags & inspect.CO_OPTIMIZED) and not code.co_name.startswith("<")


if __name__ == "__main__":
    sys.exit(main())
