"""What the program and all of its commands have in common on the command line: examples below the
help. Imported before Ctrl-C is taken care of, so it imports next to nothing."""

import tomllib
from pathlib import Path

import click

_EXAMPLES = Path(__file__).with_name("commands") / "examples.toml"


def load_examples() -> dict[str, list[str]]:
    """Command lines by what is typed behind the program's name to call the command."""
    return tomllib.loads(_EXAMPLES.read_text(encoding="utf-8"))


def in_words(called: str) -> str:
    """The examples of the command that is called so, as its help shows them."""
    return "\n  ".join(["Examples:", *load_examples()[called]])


class WithExamples(click.Command):
    """Its help ends with its examples."""

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        # not wrapped, since they are copied
        formatter.write(f"\n{in_words(ctx.command_path.partition(' ')[2])}\n")
        super().format_epilog(ctx, formatter)
