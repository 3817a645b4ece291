"""What can be typed of each kind of push: its help, an example (`push_options.toml`) and its options, for the command and the Dagster job.

Apart from what else is known about a kind (`kinds`), so that `--help` imports nothing of what a push needs.
"""

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from pipelines.options import ACCOUNT, PUSH, SOURCE, Option
from pipelines.settings import whole


class PushOptions(NamedTuple):
    """Of one kind; `push_options.toml` says what its texts are for."""

    help: str
    example: str
    options: tuple[Option, ...]


_OWN: Mapping[str, tuple[Option, ...]] = {
    "contacts": (Option("clear_empty", "an empty cell empties its custom field (default: leaves it)"),),
    "deletions": (
        Option("yes", "do not ask for the number of rows", in_ui="`confirmed_rows`, since nobody can be asked"),
        Option(
            "confirmed_rows",
            "how many rows you agree to delete: the number that the dry run shows",
            holds=int,
            read=whole,
            default=0,
            in_command="--yes, or the number typed when it is asked for",
        ),
    ),
}
#: Kind → what can be typed, in the order in which they are listed.
PUSH_OPTIONS: Mapping[str, PushOptions] = {
    kind: PushOptions(**texts, options=(*SOURCE, *PUSH, *_OWN.get(kind, ()), ACCOUNT))
    for kind, texts in tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8")).items()
}
