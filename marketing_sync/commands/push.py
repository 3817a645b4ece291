"""Send rows of a file or query back to the service; a dry run without --apply.

Not here: what is then done (`push_terminal`, `push_maintenance`)."""

import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import click

from home.options import (
    ACTIVATIONS,
    AFTERWARDS,
    JSON,
    OUT,
    PERMANENT,
    PUSH_OPTIONS,
    REJECTED,
    REVERT,
    UNKNOWN,
    Option,
)
from home.settings import Settings
from marketing_sync.commands import Group, declare_command

_TEXTS = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
#: What looks after pushes that are in the outbox.
_AFTERWARDS: dict[str, tuple[Option, ...]] = {
    "status": (*AFTERWARDS, REJECTED, OUT, JSON),
    "retry": (*AFTERWARDS, PERMANENT, JSON),
    "cancel": (*AFTERWARDS, UNKNOWN),
}
#: The commands without their own rows that send requests.
_SENDING = ("activations", "retry", "revert")

push = Group("push", epilog=_TEXTS["epilog"], subcommand_metavar="WHAT [ARGS]...")


def _add_command(name: str, doc: str, options: Iterable[Option], **how: Any) -> None:
    def run_command(settings: Settings, **values: Any) -> int:
        if name in _AFTERWARDS:
            from marketing_sync.push_maintenance import run_maintenance

            return run_maintenance(name, settings, **values)
        if name == "activations":
            from marketing_sync.push_terminal import push_activations

            return push_activations(settings, **values)
        if name in PUSH_OPTIONS:
            values["from"] = values.pop("from_")
            if (values["sql"] is None) == (values["from"] is None):
                raise click.UsageError(
                    "the rows come from either --from FILE or --sql QUERY: give one of them"
                )
        elif values["push"] is None:
            raise click.UsageError(
                "name the push to revert; `marketing-sync push status` lists them"
            )
        from marketing_sync.push_terminal import push_order

        return push_order(name, settings, **values)

    text = f"{doc[0].upper()}{doc[1:]}."
    push.add_command(
        declare_command(*options, name=name, help=text, short_help=doc.partition(":")[0], **how)(
            run_command
        )
    )


for _kind, _typed in PUSH_OPTIONS.items():
    _add_command(
        _kind,
        _typed.help,
        (*_typed.options, JSON),
        options_metavar="(--from FILE | --sql QUERY) [OPTIONS]",
    )
for _name, _options in {
    "activations": ACTIVATIONS,
    "revert": (*REVERT, JSON),
    **_AFTERWARDS,
}.items():
    _add_command(_name, _TEXTS["others"][_name], _options, needs_keys=_name in _SENDING)
