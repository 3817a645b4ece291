"""The options of sync and push, declared once for the command line (`click_parameters`) and the run
config of Dagster's UI (`launchpad`)."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import click

from home.values import SettingsError, clock_time, count, day, encoding, share, whole


@dataclass(frozen=True, slots=True)
class Option:
    """One option. The run config uses its `name`; the command line `--name`, with dashes, or its
    position.

    `holds`: the type of its value in a run config (`list`: of texts). `read`: converts from text,
    for both; ValueError says what is wrong. `in_ui`, `in_command`: what the UI or the command line
    has instead, and why; empty: it has the option."""

    name: str
    help: str
    holds: type[Any] = bool
    read: Callable[[str], Any] = str
    default: Any = None
    metavar: str | None = None
    choices: tuple[str, ...] = ()
    is_positional: bool = False
    in_ui: str = ""
    in_command: str = ""

    @property
    def flag(self) -> str:
        return self.name if self.is_positional else f"--{self.name.replace('_', '-')}"

    @property
    def unset(self) -> Any:
        """The value if the option was not chosen."""
        return {bool: False, list: []}.get(self.holds) if self.default is None else self.default

    def read_config(self, value: Any) -> Any:
        """A value of a run config, read as on the command line; None and blank are unset. Raises
        SettingsError."""
        if value in (None, ""):
            return self.unset
        if self.holds is bool:
            return value
        return (
            [self._read_text(item) for item in value]
            if self.holds is list
            else self._read_text(str(value))
        )

    def _read_text(self, text: str) -> Any:
        try:
            return self.read(text)
        except ValueError as error:
            raise SettingsError(f"{self.name}: {text!r} is {error}") from None


def _click_reader(read: Callable[[str], Any]) -> Callable[[Any], Any]:
    """Reads a text of the command line; a default passes unchanged."""

    def convert_value(value: Any) -> Any:
        try:
            return read(value) if isinstance(value, str) else value
        except ValueError as error:
            raise click.BadParameter(f"{value!r} is {error}") from None

    return convert_value


def click_parameters(options: Iterable[Option | click.Parameter]) -> list[click.Parameter]:
    """The options of the command line, for Click."""
    return [
        option if isinstance(option, click.Parameter) else _click_parameter(option)
        for option in options
        if isinstance(option, click.Parameter) or not option.in_command
    ]


def _click_parameter(option: Option) -> click.Parameter:
    if option.holds is bool:
        return click.Option(
            [option.flag, option.name], is_flag=True, default=option.unset, help=option.help
        )
    is_list = option.holds is list
    how: dict[str, Any] = {
        "type": click.Choice(option.choices) if option.choices else _click_reader(option.read),
        "default": option.unset,
        "help": option.help,
        "metavar": f"{option.metavar}..." if is_list else option.metavar,
        "callback": (lambda _, __, found: list(found)) if is_list else None,
    }
    if option.is_positional:
        return click.Argument([option.name], required=False, nargs=-1 if is_list else 1, **how)
    return click.Option([option.flag, option.name], multiple=is_list, **how)


def typed_words(options: Iterable[Option], chosen: Mapping[str, Any]) -> list[str]:
    """The chosen options, as typed on the command line."""
    found: list[str] = []
    for option in options:
        value = chosen.get(option.name, option.unset)
        if value != option.unset:
            texts = (
                []
                if value is True
                else map(_typed_value, value if isinstance(value, list) else [value])
            )
            found += texts if option.is_positional else [option.flag, *texts]
    return found


def _typed_value(value: Any) -> str:
    return (
        "=".join(value)
        if isinstance(value, tuple)
        else f"{value:g}"
        if isinstance(value, float)
        else str(value)
    )


def _read_pair(text: str) -> tuple[str, str]:
    own_name, equals, service_name = text.partition("=")
    if not equals or not own_name.strip() or not service_name.strip():
        raise ValueError("not OURS=THEIRS; write for example email=E-Mail")
    return own_name.strip(), service_name.strip()


#: The option of commands that print something; `home.output` declares the documents.
JSON = Option(
    "json",
    "print one JSON document instead, see docs/json-output.md",
    in_ui="the metadata of each step",
)
#: The option of commands that use a home.
SANDBOX = Option(
    "sandbox",
    "use the sandbox if no key is configured (the default on a terminal)",
    in_ui="a sandbox that `ui` has started",
)

# -- sync

_MOST = (
    "send at most N requests, the most valuable first; the next run resumes (default: "
    "MARKETING_MAX_REQUESTS)"
)
#: How many requests, and for which contacts.
LIMITS = (
    Option("max_requests", _MOST, int, count, metavar="N"),
    Option(
        "until",
        "send no request after this time, in the schedule's time zone (default: MARKETING_UNTIL)",
        str,
        clock_time,
        metavar="HH:MM",
    ),
    Option("all", "request every contact and campaign, even if not due"),
)
_PARTITIONS = "the partitions of the run: choose a range of days when you launch it"
_SELECTION = "the selection of the run: choose assets when you launch it"
ONLY = Option(
    "only",
    "read only these assets or tables, and build no models; unread ones that they need are "
    "read first",
    list,
    metavar="ASSET",
    in_ui=_SELECTION,
)
SYNC = (
    ONLY,
    Option(
        "from",
        "read data by day (reviews, posts, statistics) from this day on, like 2026-01-31",
        str,
        day,
        metavar="DAY",
        in_ui=_PARTITIONS,
    ),
    Option(
        "to",
        "last day of data by day (default: today in the account's time zone)",
        str,
        day,
        metavar="DAY",
        in_ui=_PARTITIONS,
    ),
    *LIMITS,
    Option(
        "reads_only",
        "read and load only; build no models, push no activations",
        in_ui=f"{_SELECTION}; those of `source` are the reads",
    ),
    Option(
        "accept_shrink",
        "load listings that lost or replaced most of their rows (overrides the shrink check)",
    ),
    Option(
        "dry_run",
        "show what would be requested and how long it takes; send nothing",
        in_ui="nothing: only the command line plans a sync without running it",
    ),
    Option(
        "quiet",
        "print only failures",
        in_ui="nothing: the UI prints nothing",
    ),
)

# -- push

#: How much of a push is verified.
VERIFY = ("all", "sample", "none")
SOURCE = (
    Option(
        "from",
        "path of a CSV, TSV, Excel or Parquet file; - is standard input",
        str,
        Path,
        metavar="FILE",
    ),
    Option("sql", "one SELECT on the warehouse", str, metavar="QUERY"),
)
ACCOUNT = Option("account", "the account, if several are configured", str, metavar="ACCOUNT")
_DRY_RUN = "`dry_run`, which is on in the launchpad until somebody turns it off, and `confirm`"
APPLY = Option(
    "apply", "send the push (default: a dry run, which shows what would be sent)", in_ui=_DRY_RUN
)
CONFIRM_WORD = "send"
CONFIRM = Option(
    "confirm",
    f"type {CONFIRM_WORD} to send for real",
    str,
    default="",
    in_command="--apply, which is typed, too",
)
REJECT_LIMIT = Option(
    "reject_limit",
    "send nothing if a larger share of the rows is invalid (default: 5%)",
    float,
    share,
    0.05,
    "SHARE",
)
IF_PLAN = Option(
    "if_plan",
    "send only the plan with this id, which the dry run prints; stop if the plan has changed",
    list,
    metavar="ID",
    in_ui="nothing: the UI has no plan that waits to be sent",
)
PUSH = (
    Option(
        "map",
        "read the column OURS from the input's column THEIRS, like email=Customer",
        list,
        _read_pair,
        metavar="OURS=THEIRS",
    ),
    Option("ignore", "columns of the input to leave out", list, metavar="COLUMN"),
    Option(
        "encoding",
        "read a text file in this encoding, like windows-1252 or mac-roman (default: UTF-8)",
        str,
        encoding,
        metavar="NAME",
    ),
    Option(
        "sheet",
        "read this sheet of a workbook (default: the first)",
        str,
        metavar="NAME",
    ),
    APPLY,
    IF_PLAN,
    Option(
        "dry_run",
        "only show what would be sent",
        default=True,
        in_command="--apply, which is its opposite",
    ),
    CONFIRM,
    Option("all", "send unchanged rows, too; activities are never sent twice"),
    Option(
        "first",
        "send only the first N rows of the input, and read all of them back",
        int,
        count,
        metavar="N",
    ),
    Option(
        "verify",
        "how many rows to read back after sending (default: a sample)",
        str,
        default="sample",
        choices=VERIFY,
    ),
    REJECT_LIMIT,
)


class PushOptions(NamedTuple):
    """The options of one kind of push. Everything else about it is in `write_back.kinds`, so that
    `--help` imports nothing that a push needs.

    `help`: what it does, a colon, its columns. `example`: the query in the launchpad, which returns
    no rows until you change it. Its comment is in SQL, since Dagster's defaults have no YAML
    comments; it has no `: ` and ` #`, so that it is shown without quotes."""

    help: str
    example: str
    options: tuple[Option, ...]


def _of_kind(text: str, example: str, *options: Option) -> PushOptions:
    return PushOptions(text, example, (*SOURCE, *PUSH, *options, ACCOUNT))


#: By kind, in the order in which they are listed.
PUSH_OPTIONS: Mapping[str, PushOptions] = {
    "contacts": _of_kind(
        (
            "add contacts to lists, or change their status and custom fields: columns email, "
            "list_id (or list), status, ip_address, and custom fields by label or id"
        ),
        (
            "/* change the address and the list */ select 'ada@example.com' as email, list_id, "
            "'active' as status from source.lists where name = 'Newsletter'"
        ),
        Option(
            "clear_empty", "clear a custom field if its cell is empty (default: leave it unchanged)"
        ),
        Option("fill_only", "send a custom field only if it was empty at the last sync"),
        Option(
            "keep",
            "which row to send if rows about a person contradict each other (default: none)",
            str,
            default="none",
            choices=("none", "last"),
        ),
        Option(
            "resubscribe",
            "let a status column make unsubscribed, bounced or unconfirmed people active (default: "
            "leave their status unchanged)",
        ),
    ),
    "tags": _of_kind(
        (
            "tag contacts: columns email or contact_id, tag (several with commas), action (add or "
            "remove)"
        ),
        (
            "/* change the address and the tag */ select distinct email, 'vip' as tag from "
            "source.contacts where email = 'ada@example.com'"
        ),
    ),
    "activities": _of_kind(
        "add entries to contacts' timelines: columns email or contact_id, description, datetime",
        (
            "/* change the address and the text */ select distinct email, 'In the shop' as "
            "description, '2026-01-31 10:00' as datetime from source.contacts where email = "
            "'ada@example.com'"
        ),
    ),
}

ACTIVATIONS = (
    Option(
        "names",
        "push only these entries (default: all enabled ones)",
        list,
        metavar="[ACTIVATION]",
        is_positional=True,
    ),
    Option("apply", APPLY.help, in_ui="`confirm`, without which nothing is sent"),
    CONFIRM,
    Option(
        "accept_shrink",
        "accept an empty result, or one that lost most of its people (overrides the shrink check)",
    ),
    IF_PLAN,
    Option("resync", "send everything again"),
    REJECT_LIMIT,
)
_MAINTENANCE = "nothing: pushes are maintained on the command line, the UI shows each step's result"
#: Options of `push status`, `retry` and `cancel`.
AFTERWARDS = (
    Option(
        "push",
        "number of the push (default: all)",
        int,
        whole,
        metavar="[N]",
        is_positional=True,
        in_ui=_MAINTENANCE,
    ),
    ACCOUNT,
)
TAGS_TOO = Option(
    "tags",
    "also remove the tags that the push gave, and restore the tags that it removed (default: only "
    "list them)",
    in_ui=_MAINTENANCE,
)
RESUBSCRIBE = Option(
    "resubscribe",
    "resubscribe people whom the push unsubscribed (default: leave their status unchanged)",
    in_ui=_MAINTENANCE,
)
#: Options of `push revert`.
REVERT: tuple[Option, ...] = (
    Option(
        "push",
        "number of the push",
        int,
        whole,
        metavar="N",
        is_positional=True,
        in_ui=_MAINTENANCE,
    ),
    TAGS_TOO,
    RESUBSCRIBE,
    APPLY,
    IF_PLAN,
    ACCOUNT,
)
REJECTED = Option(
    "rejected",
    "write the rejected rows of the push (default: the last) to a CSV file that you can correct "
    "and push",
    in_ui=_MAINTENANCE,
)
OUT = Option(
    "out",
    "with --rejected: the file to write, or - for standard output (default: a file in the home; in "
    "a pipe, standard output)",
    str,
    Path,
    metavar="FILE",
    in_ui=_MAINTENANCE,
)
PERMANENT = Option("permanent", "also resend permanently refused requests", in_ui=_MAINTENANCE)
UNKNOWN = Option(
    "unknown",
    "also close requests of unknown outcome; check first whether they took effect",
    in_ui=_MAINTENANCE,
)
