"""How a sandbox is configured, and its command line."""

import dataclasses
import datetime as dt
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from marketing_api.pacing import SPECIFIED_RATE
from marketing_api.records.values import read_zone
from marketing_api.sandbox.faults import FAULTS, read_chance

DEFAULT_KEY = "sandbox-key"
#: Requests a second, as a client of the live service measured it (observation 27).
RATE_OBSERVED = 10


_PATH = click.Path(path_type=Path)


def _make_type(name: str, read: Callable[[str], Any]) -> Callable[[str], Any]:
    """The type of an option that takes what `read` does; a ValueError is wrong usage, with its
    reason."""

    def convert(text: str) -> Any:
        try:
            return read(text)
        except ValueError as error:
            raise click.BadParameter(f"{text!r}: {error}") from None

    convert.__name__ = name
    return convert


def _read_time(text: str) -> int:
    return int(dt.datetime.fromisoformat(text).replace(tzinfo=dt.UTC).timestamp())


def _declare_flag(default: Any, kind: Any, help: str) -> Any:
    """An option of the command line."""
    return dataclasses.field(default=default, metadata={"type": kind, "help": help})


@dataclass(frozen=True)
class Options:
    """`now` is unix seconds. `faults` maps names to `probability[@operations]`."""

    port: int = _declare_flag(0, click.IntRange(0, 65_535), "port on 127.0.0.1; 0: any free one")
    key: str = _declare_flag(DEFAULT_KEY, str, "the key that is accepted")
    seed: int = _declare_flag(1, int, "decides the account's data, and which requests fail")
    contacts: int = _declare_flag(
        150, click.IntRange(1, 20_000), "contacts at the start, at most 20,000"
    )
    now: int | None = _declare_flag(
        None,
        _make_type("time", _read_time),
        "stop the clock at this UTC time, like 2026-11-01T03:00 (default: it runs from now)",
    )
    timezone: str = _declare_flag("UTC", _make_type("zone", read_zone), "the account's time zone")
    rate_limit: int | None = _declare_flag(
        None,
        click.IntRange(0),
        f"requests a second; 0: no limit (default: {SPECIFIED_RATE:g}, with --as-observed "
        f"{RATE_OBSERVED})",
    )
    latency_ms: float = _declare_flag(
        0.0, float, "latency of each response; half of it passes before the request counts"
    )
    stall_seconds: float = _declare_flag(60.0, float, "delay of a stalled response")
    state: Path | None = _declare_flag(  # noqa: RUF009 (the default is immutable)
        None, _PATH, "file that keeps writes for the next start"
    )
    as_observed: bool = _declare_flag(
        False, bool, "behave as observed at the live service (docs/sandbox.md)"
    )
    faults: Mapping[str, str] = dataclasses.field(default_factory=dict)


def make_command(run: Callable[[Options, int | None], int], epilog: str = "") -> click.Command:
    """The command line; `run` is given the options, and the id of the process with which the
    sandbox ends."""
    chance = _make_type("p[@operations]", lambda text: str(read_chance(text)))

    def start(parent: int | None, **values: Any) -> int:
        chances = {name: values.pop(f"fault_{name.replace('-', '_')}") for name in FAULTS}
        faults = {name: chance for name, chance in chances.items() if chance}
        return run(Options(**values, faults=faults), parent)

    return click.Command(
        "sandbox",
        params=[
            *(_make_flag(one) for one in dataclasses.fields(Options) if one.metadata),
            *(
                click.Option([f"--fault-{name}"], type=chance, help=fault.doc)
                for name, fault in FAULTS.items()
            ),
            click.Option(
                ["--parent"], type=int, help="end when this process id is no longer the parent"
            ),
        ],
        callback=start,
        help="Run a simulated service on this machine. Each fault takes a probability, and "
        "optionally the operations that it affects, like 0.02@goal/show.",
        epilog=epilog,
        context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120},
        options_metavar="[--port P] [--contacts N] [--now TIME] [OPTIONS]",
    )


def _make_flag(option: dataclasses.Field[Any]) -> click.Option:
    return click.Option(
        [f"--{option.name.replace('_', '-')}"],
        default=option.default,
        show_default=True,
        is_flag=option.type is bool,
        **option.metadata,
    )
