"""Runs every attack of this folder, one after another: what `make attack` does. Names choose some of them.

    python -m tests.attack [NAME…] [--minutes M] [--seed S] [--only CASE]

`--minutes` is what each attack may take; `--only` replays the case that a failure names. Prints each summary as
it comes, then a table; exit code 1 when one failed."""

import argparse
import importlib
import pkgutil
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import tests.attack

Attack = Callable[..., str]
DEFAULT_MINUTES = 30.0


@dataclass(frozen=True)
class Outcome:
    name: str
    has_failed: bool
    seconds: float


def attacks() -> dict[str, Attack]:
    """The modules of this folder with a function `attack`, by name."""
    names = [
        found.name
        for found in pkgutil.iter_modules(tests.attack.__path__)
        if not found.name.startswith(("test_", "_"))
    ]
    modules = {name: importlib.import_module(f"tests.attack.{name}") for name in names}
    return {name: module.attack for name, module in modules.items() if hasattr(module, "attack")}


def carry_out(name: str, attack: Attack, minutes: float, seed: int, *only: str) -> Outcome:
    print(f"\n## {name} (seed {seed})\n", flush=True)
    began = time.monotonic()
    try:
        print(attack(minutes, seed, *only), flush=True)
    except Exception as problem:  # the other attacks are worth running all the same
        if not isinstance(problem, AssertionError):
            traceback.print_exc(file=sys.stdout)
        print(f"FAILED: {problem}", flush=True)
        return Outcome(name, True, time.monotonic() - began)
    return Outcome(name, False, time.monotonic() - began)


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.attack", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument(
        "--minutes", type=float, default=DEFAULT_MINUTES, help="of each attack (default: %(default)g)"
    )
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", action="append", default=[], metavar="CASE", help="of an attack with cases")
    arguments = parser.parse_args(argv)
    every = attacks()
    if unknown := set(arguments.names) - set(every):
        parser.error(f"no attack is named {', '.join(sorted(unknown))}; there are {', '.join(every)}")
    chosen = arguments.names or list(every)
    outcomes = [
        carry_out(name, every[name], arguments.minutes, arguments.seed, *arguments.only) for name in chosen
    ]
    print("\n| attack | result | seconds | seed |\n|---|---|---:|---:|")
    for each in outcomes:
        print(
            f"| {each.name} | {'FAILED' if each.has_failed else 'passed'} | {each.seconds:.0f} | "
            f"{arguments.seed} |"
        )
    return int(any(each.has_failed for each in outcomes))


if __name__ == "__main__":
    sys.exit(main())
