"""`marketing-sync push`: rows of a file or a query go back to the service. Without --apply it only tells what it would do.

Belongs here: what can be typed. Not here: what is then done (`write_back.terminal`).
"""

from __future__ import annotations

import argparse

from pipelines.commands.arguments import add_options
from pipelines.options import ACTIVATIONS, AFTERWARDS, SOURCE, UNKNOWN, push_options
from pipelines.settings import Settings
from pipelines.write_back.kinds import KINDS, Kind

_EXAMPLES = """\
examples:
  marketing-sync push tags --sql "select email, 'vip' as tag from source.contacts where …"
  marketing-sync push contacts --from people.xlsx --map email="E-mail" --apply
  some-program | marketing-sync push activities --from - --apply

Without --apply nothing is sent, and the plan ends with the command that would
send it. What was sent is never sent twice: after a kill, a lost line or a full
disk the same command again goes on. docs/sending-back.md tells more.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """A sub-command per kind, and those that look after pushes."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = _EXAMPLES
    actions = parser.add_subparsers(dest="action", required=True, metavar="WHAT")
    for kind in KINDS.values():
        _add_kind(actions.add_parser(kind, help=kind.help.partition(":")[0], description=_sentence(kind.help)), kind)
    doc = "people who entered or left the segments of activations.toml"
    activations = actions.add_parser("activations", help=doc, description=_sentence(doc))
    add_options(activations, ACTIVATIONS)
    for name, doc in {
        "status": "what was pushed and what became of it; one push in detail",
        "retry": "send once more what the service refused, or what is unknown, and go on with whatever is open",
        "cancel": "drop what is not sent yet",
    }.items():
        after = actions.add_parser(name, help=doc, description=_sentence(doc))
        add_options(after, (*AFTERWARDS, UNKNOWN) if name == "cancel" else AFTERWARDS)


def _add_kind(parser: argparse.ArgumentParser, kind: Kind) -> None:
    parser.usage = f"marketing-sync push {kind} (--from FILE | --sql QUERY) [options]"  # the generated one takes seven lines
    add_options(parser.add_mutually_exclusive_group(required=True), SOURCE)
    add_options(parser, [option for option in push_options(kind) if option not in SOURCE])


def run(arguments: argparse.Namespace, settings: Settings) -> int:
    """0 when everything is as it was meant to be, 1 when something is not (said which), 2 for wrong use."""
    from pipelines.write_back import terminal

    return terminal.run(arguments, settings)


def _sentence(doc: str) -> str:
    return f"{doc[0].upper()}{doc[1:]}."
