"""What the program and all of its commands have in common on the command line: examples below the help, and
`-v`. Imported before Ctrl-C is taken care of, so it imports next to nothing."""

import tomllib
from pathlib import Path

import click

_EXAMPLES = Path(__file__).with_name("commands") / "examples.toml"
_VERBOSE = "marketing-sync.verbose"


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


def verbose_option() -> click.Option:
    """`-v` may stand behind the program's name or the command's."""

    def note_verbose(ctx: click.Context, _: click.Parameter, is_on: bool) -> None:
        ctx.meta[_VERBOSE] = is_on or is_verbose(ctx)

    about = "log to standard error what is done, with every request (as MARKETING_LOG=DEBUG does)"
    return click.Option(
        ["-v", "--verbose"], is_flag=True, expose_value=False, callback=note_verbose, help=about
    )


def is_verbose(ctx: click.Context) -> bool:
    return bool(ctx.meta.get(_VERBOSE))
