"""Examples below the help of the program and its commands. It is imported before Ctrl-C is handled,
so it imports almost nothing."""

import tomllib
from pathlib import Path

import click

_EXAMPLES = Path(__file__).with_name("commands") / "examples.toml"


def load_examples() -> dict[str, list[str]]:
    """Example command lines by command, such as `push contacts`."""
    return tomllib.loads(_EXAMPLES.read_text(encoding="utf-8"))


def format_examples(command: str) -> str:
    """The examples of the command, as its help displays them."""
    return "\n  ".join(["Examples:", *load_examples()[command]])


class WithExamples(click.Command):
    """Its help ends with its examples."""

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        # not wrapped, since they are copied
        formatter.write(f"\n{format_examples(ctx.command_path.partition(' ')[2])}\n")
        super().format_epilog(ctx, formatter)
