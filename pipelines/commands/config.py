"""Show the settings: what each is set to, and where.

Not here: whether they work (`doctor`)."""

from collections.abc import Iterator
from typing import Any

from rich.console import Console

from home import exits
from home.options import JSON
from home.output import Config, Setting, print_json
from home.settings import HIDDEN, VARIABLES, Settings, find_sources, typed_setting
from home.texts import make_grid
from marketing_api.redaction import Secret
from pipelines.commands import Arguments, Group, declare_command


@declare_command(
    JSON,
    name="show",
    short_help="each setting, its value and where that comes from",
    is_for_all_shards=True,
    uses_home=False,
)
def _show(arguments: Arguments, settings: Settings) -> int:
    """Each setting, its value and where that comes from: the environment, which overrides `.env`, or the
    default. Secrets are hidden. What the settings mean: docs/configuration.md."""
    found = Config(list(_list_settings(settings)), list(settings.unknown))
    if arguments.json:
        print_json(found)
        return exits.DONE
    cells = ((each.name, each.value or "", each.source) for each in found.settings)
    Console(highlight=False, markup=False).print(make_grid("", "setting, value, from", cells))
    print(*found.notices, sep="\n", end="\n" if found.notices else "")
    return exits.DONE


def _list_settings(settings: Settings) -> Iterator[Setting]:
    where = find_sources(settings.folder)

    def setting(name: str, value: Any, meaning: str) -> Setting:
        is_hidden = isinstance(value, Secret) or (name in HIDDEN and value)
        text = "***" if is_hidden else typed_setting(value)
        names = (each for each in (name, f"{name}_FILE") if each in where)
        return Setting(name, text or None, where.get(next(names, name), "default"), meaning)

    one = settings.accounts[0] if len(settings.accounts) == 1 else None
    yield setting("MARKETING_HOME", settings.home, "the folder that everything is kept in")
    if not (settings.folder / "accounts.toml").exists():
        yield setting("MARKETING_API_URL", one and one.url, "address of the service, up to and including /1")
        yield setting("MARKETING_API_KEY", one and one.key, "the key of the account")
    for name, field in VARIABLES.items():
        yield setting(name, getattr(settings, field.name), field.metadata["doc"])


config = Group("config", commands=[_show], subcommand_metavar="show")
