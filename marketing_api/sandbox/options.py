"""How a sandbox is configured, and its command line."""

import datetime as dt
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import click

from marketing_api.sandbox.faults import FAULTS, read_chance

DEFAULT_KEY = "sandbox-key"
#: Requests a second; a client of the live service measured the second one (observation 27).
RATE_SPECIFIED, RATE_OBSERVED = 15, 10


@dataclass(frozen=True)
class Options:
    """`now` is unix seconds. `faults` maps names to `probability[@operations]`."""

    port: int = 0
    key: str = DEFAULT_KEY
    seed: int = 1
    contacts: int = 150
    now: int | None = None
    timezone: str = "UTC"
    rate_limit: int | None = None  # as the service has it
    latency_ms: float = 0.0
    stall_seconds: float = 60.0
    state: Path | None = None
    as_observed: bool = False
    faults: Mapping[str, str] = field(default_factory=dict)


class _Text(click.ParamType[Any]):
    """What `read` makes of a text; a ValueError is wrong usage, with its reason."""

    def __init__(self, name: str, read: Callable[[str], Any]) -> None:
        self.name, self.read = name, read

    def convert(
        self, value: Any, param: click.Parameter | None, context: click.Context | None
    ) -> Any:
        try:
            return self.read(value) if isinstance(value, str) else value
        except (ValueError, ZoneInfoNotFoundError) as problem:
            raise click.BadParameter(f"{value!r}: {problem}") from None


def _read_time(text: str) -> int:
    return int(dt.datetime.fromisoformat(text).replace(tzinfo=dt.UTC).timestamp())


#: Flag, type, and what it is for.
_OPTIONS: list[tuple[str, Any, str]] = [
    ("port", click.IntRange(0, 65_535), "port on 127.0.0.1; 0: any free one"),
    ("key", str, "the key that is accepted"),
    ("seed", int, "which account, and which requests faults hit"),
    ("contacts", click.IntRange(1, 20_000), "contacts at its start, at most 20,000"),
    (
        "now",
        _Text("time", _read_time),
        "let the clock stand still at this UTC time, like 2026-11-01T03:00 (default: the present)",
    ),
    ("timezone", _Text("zone", lambda text: ZoneInfo(text).key), "the account's time zone"),
    (
        "rate-limit",
        click.IntRange(0),
        f"requests a second; 0: no limit (default: {RATE_SPECIFIED}, with --as-observed "
        f"{RATE_OBSERVED})",
    ),
    ("latency-ms", float, "latency of each response; half of it passes before the request counts"),
    ("stall-seconds", float, "how long a stalled response takes"),
    ("state", click.Path(path_type=Path), "journal of writes, repeated at the next start"),
]


def make_command(run: Callable[[Options, int | None], int], epilog: str = "") -> click.Command:
    """The command line; `run` is given the options, and the id of the process with which the
    sandbox ends."""
    chance = _Text("p[@operations]", lambda text: str(read_chance(text)))

    def start(parent: int | None, **given: Any) -> int:
        chances = {name: given.pop(f"fault_{name.replace('-', '_')}") for name in FAULTS}
        return run(
            Options(**given, faults={name: one for name, one in chances.items() if one}), parent
        )

    return click.Command(
        "sandbox",
        params=[
            *(_make_flag(name, kind, help) for name, kind, help in _OPTIONS),
            *(_make_flag(f"fault-{name}", chance, fault.doc) for name, fault in FAULTS.items()),
            click.Option(
                ["--parent"], type=int, help="end when this process is no longer the parent"
            ),
            click.Option(
                ["--as-observed"],
                is_flag=True,
                help="behave as clients of the live service have met it (docs/sandbox.md)",
            ),
        ],
        callback=start,
        help="A stand-in for the service, on the loopback only. Faults take a probability, and the "
        "operations that they hit, like 0.02@goal/show.",
        epilog=epilog,
        context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120},
        options_metavar="[--port P] [--contacts N] [--now TIME] [OPTIONS]",
    )


def _make_flag(name: str, kind: Any, help: str) -> click.Option:
    default = getattr(Options, name.replace("-", "_"), None)
    return click.Option([f"--{name}"], type=kind, default=default, show_default=True, help=help)
