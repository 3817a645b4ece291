"""`marketing-sync push`: rows of a file or a query go back to the service. Without --apply it only tells what it would do.

Belongs here: what can be typed. Not here: what is then done (`write_back.terminal`).
"""

from __future__ import annotations

import argparse
from pathlib import Path

from pipelines.settings import Settings
from pipelines.write_back.item import Kind

_KINDS = {
    Kind.CONTACTS: "add people to lists, or change their status and custom fields: columns email, list_id (or list), status, ip_address, "
    "and any custom field by its label or id",
    Kind.TAGS: "tag people: columns email or contact_id, tag (several with commas), action (add or remove)",
    Kind.ACTIVITIES: "write into people's timelines: columns email or contact_id, description, datetime",
    Kind.MOVES: "move people from one list to another: columns email or contact_id, from, to",
    Kind.DELETIONS: "delete people from lists: columns email or contact_id, list_id; asks for the number of requests",
}
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
    for kind, doc in _KINDS.items():
        _add_kind(actions.add_parser(kind.value, help=doc.partition(":")[0], description=_sentence(doc)), kind)
    doc = "people who entered or left the segments of activations.toml"
    activations = actions.add_parser("activations", help=doc, description=_sentence(doc))
    activations.add_argument("names", nargs="*", metavar="NAME", help="these only (default: all that are enabled)")
    activations.add_argument("--apply", action="store_true", help="send it (default: tell only what would be sent)")
    activations.add_argument("--accept-shrink", action="store_true", help="believe a result that is empty or has lost most of its people")
    for name, doc in {
        "status": "what was pushed and what became of it; one push in detail",
        "retry": "send once more what the service refused, or what is unknown, and go on with whatever is open",
        "cancel": "drop what is not sent yet",
    }.items():
        after = actions.add_parser(name, help=doc, description=_sentence(doc))
        after.add_argument("push", nargs="?", type=int, metavar="N", help="number of the push (default: all)")
        if name == "cancel":
            after.add_argument("--unknown", action="store_true", help="what is unknown, too: you have looked whether it took effect")
        _add_account(after)


def _add_kind(parser: argparse.ArgumentParser, kind: Kind) -> None:
    parser.usage = f"marketing-sync push {kind} (--from FILE | --sql QUERY) [options]"  # the generated one takes seven lines
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--from", dest="file", type=Path, metavar="FILE", help="CSV, TSV, Excel or Parquet; - is standard input")
    source.add_argument("--sql", dest="query", metavar="QUERY", help="one SELECT on the warehouse, which can read nothing else")
    parser.add_argument(
        "--map", nargs="+", action="extend", default=[], metavar="OURS=THEIRS", type=_pair, help="what our columns are called"
    )
    parser.add_argument("--ignore", nargs="+", action="extend", default=[], metavar="COLUMN", help="columns to leave out")
    parser.add_argument("--apply", action="store_true", help="send it (default: tell only what would be sent)")
    parser.add_argument("--all", action="store_true", help="send what is known to be so already, too; activities never twice")
    parser.add_argument("--verify", choices=("all", "sample", "none"), default="sample", help="how much is read back (default: a sample)")
    parser.add_argument(
        "--reject-limit", type=_share, default=0.05, metavar="SHARE", help="send nothing when more rows are bad (default 5%%)"
    )
    parser.add_argument("--max-rows", type=_count, metavar="N", help="refuse an input with more rows")
    if kind is Kind.CONTACTS:
        parser.add_argument("--clear-empty", action="store_true", help="an empty cell empties its custom field (default: leaves it)")
    if kind is Kind.DELETIONS:
        parser.add_argument("--yes", action="store_true", help="do not ask for the number")
    _add_account(parser)


def _add_account(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--account", metavar="NAME", help="which account, when several are configured")


def run(arguments: argparse.Namespace, settings: Settings) -> int:
    """0 when everything is as it was meant to be, 1 when something is not (said which), 2 for wrong use."""
    from pipelines.write_back import terminal

    return terminal.run(arguments, settings)


def _sentence(doc: str) -> str:
    return f"{doc[0].upper()}{doc[1:]}."


def _pair(text: str) -> tuple[str, str]:
    ours, equals, theirs = text.partition("=")
    if not equals or not ours.strip() or not theirs.strip():
        raise argparse.ArgumentTypeError(f"{text!r} is not OURS=THEIRS; write for example email=E-Mail")
    return ours.strip(), theirs.strip()


def _share(text: str) -> float:
    """`5%`, `5 %` or `0.05`."""
    try:
        share = float(text.rstrip("% ")) / (100 if text.strip().endswith("%") else 1)
    except ValueError:
        share = -1.0
    if not 0 <= share <= 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a share; write it like 5% or 0.05")
    return share


def _count(text: str) -> int:
    if not text.isdigit() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of rows; it takes a whole number above 0")
    return int(text)
