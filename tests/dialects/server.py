"""`serve` and the command line of the sandbox, in every dialect."""

import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import fields
from typing import Any

import click

from marketing_api.sandbox import options, server
from marketing_api.sandbox.app import App
from marketing_api.sandbox.faults import read_chance
from tests.dialects.app import AccountOptions, Options, RoughApp
from tests.dialects.faults import HOSTILE
from tests.dialects.switches import SWITCHES

__all__ = ["AccountOptions", "Options", "main", "serve", "spawn"]


@contextmanager
def serve(
    chosen: options.Options | None = None, make: Callable[[options.Options], App] = RoughApp
) -> Iterator[str]:
    """A sandbox in a thread of this process; yields its base address (`http://127.0.0.1:PORT/1`)."""
    with server.Server(make(chosen or Options())) as running:
        threading.Thread(target=running.serve_forever, args=(0.02,), daemon=True).start()
        try:
            yield running.url
        finally:
            running.shutdown()


def main(argv: Sequence[str] | None = None) -> int:
    """The product's command, with an option for each switch and hostile fault, `--revoke-after N`, and
    `--account NAME=KEY:SEED:CONTACTS`, as often as wanted."""
    more = dict[str, Any]()

    def run(chosen: options.Options, parent: int | None) -> int:
        given = {one.name: getattr(chosen, one.name) for one in fields(options.Options)}
        faults = {name: str(read_chance(more.pop(name))) for name in HOSTILE if more.get(name)}
        revoke_after = int(more.pop("revoke-after", None) or 0)
        switches = {name: value for name, value in more.items() if value is not None and name in SWITCHES}
        given["faults"] = {**given["faults"], **faults}
        accounts = tuple(map(_account, more.pop("account", None) or ()))
        rough = Options(**given, switches=switches, revoke_after=revoke_after, accounts=accounts)
        return server.run(RoughApp(rough), parent)

    def note(context: click.Context, parameter: click.Parameter, value: Any) -> None:
        more[str(parameter.metavar)] = value

    command = options.make_command(run)
    flags = {f"fault-{name}": name for name in HOSTILE} | {name: name for name in (*SWITCHES, "revoke-after")}
    for flag, name in flags.items():
        command.params.append(click.Option([f"--{flag}"], callback=note, expose_value=False, metavar=name))
    account = click.Option(["--account"], callback=note, expose_value=False, metavar="account", multiple=True)
    command.params.append(account)
    return int(command.main(argv, "sandbox", standalone_mode=False) or 0)


def _account(text: str) -> AccountOptions:
    name, _, rest = text.partition("=")
    key, seed, contacts = rest.split(":")
    return AccountOptions(name, key, int(seed), int(contacts))


@contextmanager
def spawn(*arguments: str) -> Iterator[str]:
    """As the product's, from a process of its own that ends with this one."""
    words = [sys.executable, "-m", "tests.dialects.server", "--parent", str(os.getpid()), *arguments]
    child = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    try:
        yield child.stdout.readline().split()[-1]
    finally:
        child.terminate()
        child.wait()
        child.stdout.close()


if __name__ == "__main__":
    raise SystemExit(main())
