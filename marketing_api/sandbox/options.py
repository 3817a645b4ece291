"""How a sandbox is configured: each option is declared once, as a member of `Options`; the command line
follows from it."""

import datetime as dt
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import click

from marketing_api.sandbox.faults import FAULTS, read_chance

DEFAULT_KEY = "sandbox-key"
#: What `--as-observed` changes; docs/sandbox.md says how, and each is looked up where the behaviour is.
OBSERVED = frozenset(
    {
        "addtag-missing",
        "bad-key",
        "business-names",
        "campaign-groups",
        "channels",
        "contact-paging",
        "delete-everywhere",
        "email-field",
        "email-found",
        "email-missing",
        "header-extras",
        "listed-fields",
        "rate-limit-after",
        "sending",
        "show-timezone",
        "sync-delay",
        "validation-fields",
    }
)
#: Requests a second that a client of the live service measured (observation 27); the specification says 15.
RATE_SPECIFIED, RATE_OBSERVED = 15, 10
_LIMITS = (
    f"requests a second and key; 0: no limit (default: {RATE_SPECIFIED}, with --as-observed {RATE_OBSERVED})"
)


def _checked(read: Callable[[str], Any]) -> Callable[[Any], Any]:
    """Reads a text of the command line, so that a ValueError is wrong usage, with its reason; a default
    passes as it is."""

    def convert(value: Any) -> Any:
        try:
            return read(value) if isinstance(value, str) else value
        except (ValueError, ZoneInfoNotFoundError) as problem:
            raise click.BadParameter(f"{value!r}: {problem}") from None

    return convert


def _pair(text: str) -> tuple[float, float]:
    median, _, p99 = text.partition(",")
    return float(median), float(p99 or median)


def option(default: Any, help: str, type: Any = None, /, **how: Any) -> Any:
    """A member of `Options` that the command line has, too; `how` goes to click."""
    return field(default=default, metadata={"help": help, "type": type, **how})


@dataclass(frozen=True)
class Options:
    """`now` is unix seconds. `faults` maps names to `probability[@operations]`, `observed` is a part of
    `OBSERVED`."""

    port: int = option(0, "port on 127.0.0.1; 0: any free one", click.IntRange(0, 65_535))
    key: str = option(DEFAULT_KEY, "the key that is accepted")
    seed: int = option(1, "which account")
    contacts: int = option(600, "contacts at its start, at most 20,000", click.IntRange(1, 20_000))
    now: int | None = option(
        None,
        "let the clock stand still at this UTC time, like 2026-11-01T03:00 (default: the present)",
        _checked(lambda text: int(dt.datetime.fromisoformat(text).replace(tzinfo=dt.UTC).timestamp())),
        metavar="TIME",
    )
    timezone: str = option(
        "UTC", "the account's time zone", _checked(lambda text: ZoneInfo(text).key), metavar="ZONE"
    )
    rate_limit: int = option(RATE_SPECIFIED, _LIMITS, click.IntRange(0), default=None)
    latency_ms: tuple[float, float] = option(
        (0.0, 0.0), "log-normal delay of responses", _checked(_pair), metavar="MEDIAN,P99"
    )
    jitter_ms: tuple[float, float] = option(
        (0.0, 0.0), "delay before a request is counted", _checked(_pair), metavar="MEDIAN,P99"
    )
    stall_seconds: float = option(60.0, "how long a stalled response takes")
    fault_seed: int = option(1, "which requests are hit")
    state: Path | None = option(None, "journal of writes, replayed at start", click.Path(path_type=Path))
    observed: frozenset[str] = frozenset()
    faults: Mapping[str, str] = field(default_factory=dict)


def command(run: Callable[[Options, int | None], int], epilog: str = "") -> click.Command:
    """The command line; `run` is given the options, and the id of the process with which the sandbox ends."""
    parameters: list[click.Parameter] = [
        *(_of_field(one) for one in fields(Options) if one.metadata),
        click.Option(
            ["--parent"], type=int, help="end when the process with this id is no longer the parent"
        ),
        click.Option(
            ["--as-observed"],
            is_flag=True,
            help="behave as clients of the live service have met it, not as specified: see docs/sandbox.md",
        ),
    ]
    chance = _checked(lambda text: str(read_chance(text)))
    for name, fault in FAULTS.items():
        option = [f"--fault-{name}"]
        parameters.append(click.Option(option, type=chance, metavar="P[@OPERATIONS]", help=fault.doc))
    return click.Command(
        "sandbox",
        params=parameters,
        callback=lambda parent, **given: run(_options(given), parent),
        help="A stand-in for the service, on the loopback only. Faults take a probability, and the "
        "operations that they hit, like 0.02@goal/show.",
        epilog=epilog,
        context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120},
        options_metavar="[--port P] [--contacts N] [--now TIME] [OPTIONS]",
    )


def _of_field(one: Any) -> click.Option:
    how = {"default": one.default, **one.metadata}
    flag = f"--{one.name.replace('_', '-')}"
    return click.Option([flag], show_default=how["default"] not in (None, (0.0, 0.0)), **how)


def _options(given: dict[str, Any]) -> Options:
    is_observed = given.pop("as_observed")
    chances = {name: given.pop(f"fault_{name.replace('-', '_')}") for name in FAULTS}
    if given["rate_limit"] is None:
        given["rate_limit"] = RATE_OBSERVED if is_observed else RATE_SPECIFIED
    return Options(
        **given,
        observed=OBSERVED if is_observed else frozenset(),
        faults={name: chance for name, chance in chances.items() if chance},
    )
