"""`marketing-sync push`: what can be typed to send rows back to the service. Not here: what is then done (`write_back.terminal`)."""

from collections.abc import Iterable
from typing import Any

import click

from pipelines.commands import Arguments, Group, command
from pipelines.options import ACTIVATIONS, AFTERWARDS, JSON, OUT, PERMANENT, UNKNOWN, Option
from pipelines.settings import Settings
from pipelines.write_back.push_options import PUSH_OPTIONS

_OTHERS: dict[str, tuple[str, tuple[Option, ...]]] = {
    "activations": ("send who entered or left the segments of activations.toml", ACTIVATIONS),
    "status": ("show what was pushed and what became of it; one push in detail", (*AFTERWARDS, JSON)),
    "rejected": ("write rejected rows to a CSV, to be corrected and pushed again: of one push, or of all", (*AFTERWARDS, OUT, JSON)),
    "retry": (
        "send rejected requests once more unless that is no use, find out unknown outcomes, and resume whatever is open",
        (*AFTERWARDS, PERMANENT, JSON),
    ),
    "cancel": ("drop what is not sent yet", (*AFTERWARDS, UNKNOWN)),
}
_EXAMPLES = """\b
Examples:
  marketing-sync push tags --sql "select distinct email, 'vip' as tag from source.contacts where …"
  marketing-sync push contacts --from people.xlsx --map email=Customer --apply
  some-program | marketing-sync push activities --from - --apply

\b
Without --apply nothing is sent, and the plan ends with the command that would
send it. A push is idempotent: what was sent is never sent twice; after a kill,
a lost line or a full disk the same command again resumes. More in
docs/sending-back.md."""

push = Group("push", epilog=_EXAMPLES, no_args_is_help=False, subcommand_metavar="WHAT [ARGS]...")


def _add(name: str, doc: str, options: Iterable[Option], **how: Any) -> None:
    def work(arguments: Arguments, settings: Settings) -> int:
        if name in PUSH_OPTIONS and (arguments.sql is None) == (vars(arguments)["from"] is None):
            raise click.UsageError("the rows come from either --from FILE or --sql QUERY: give one of them")
        from pipelines.write_back import terminal

        arguments.action = name
        return terminal.run(arguments, settings)

    text = f"{doc[0].upper()}{doc[1:]}."
    push.add_command(command(*options, name=name, help=text, short_help=doc.partition(":")[0], **how)(work))


for _kind, _typed in PUSH_OPTIONS.items():
    _add(_kind, _typed.help, (*_typed.options, JSON), options_metavar="(--from FILE | --sql QUERY) [OPTIONS]")
for _name, (_doc, _options) in _OTHERS.items():
    _add(_name, _doc, _options)
