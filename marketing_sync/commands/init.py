"""Connect an account: asks for address and key, checks them, writes .env."""

import shlex
import sys
from pathlib import Path

import click
from dotenv import dotenv_values, set_key, unset_key

from home import exits
from home.account_files import read_address
from home.options import Option
from home.settings import Settings, SettingsError, load_settings
from marketing_api.exchange import Connection
from marketing_api.redaction import Secret
from marketing_sync.account_check import check_account
from marketing_sync.commands import declare_command, print_error

_NEXT_STEPS = """
now           marketing-sync sync       the first one reads the whole history
every night   one of these three:
  the UI      marketing-sync ui         while it is open, its schedule `nightly` runs
  cron        {cron} cd {folder} && {program} sync --quiet
  systemd     a service and a timer: docs/running.md"""


@declare_command(
    Option(
        "url",
        "address of the service, up to and including /1 (default: asks for it)",
        str,
        metavar="URL",
    ),
    uses_home=False,
)
def init(settings: Settings, url: str | None) -> int:
    """The key isn't displayed while you type it. In scripts, write it to standard input. One
    request checks both, and nothing is written before it succeeds."""
    if (settings.folder / "accounts.toml").exists():
        raise SettingsError(
            "this folder has an accounts.toml: add your account there (docs/configuration.md)"
        )
    file = settings.folder / ".env"
    if settings.accounts and not load_settings(settings.folder, {}).accounts:
        raise SettingsError(
            "the environment sets address and key, and overrides .env: unset them first"
        )
    # A script isn't asked.
    if (
        settings.accounts
        and sys.stdin.isatty()
        and not click.confirm("An account is configured already. Replace its address and key?")
    ):
        print("nothing was changed")
        return exits.INCOMPLETE
    connection = Connection(
        "main",
        read_address("the address", _ask_url(url)),
        Secret(_ask_key()),
        budget_url=settings.budget_url,
    )
    found, _ = check_account(connection)
    print(found.text)
    if not found.is_well:
        return print_error(
            "nothing was written; correct the address or the key, and try again", exits.WRONG_USE
        )
    _write_values(
        file, {"MARKETING_API_URL": connection.url, "MARKETING_API_KEY": connection.key.reveal()}
    )
    print(
        f"{file}: has the address and the key, readable only by you; keep it out of version control"
    )
    folder, program = (
        shlex.quote(str(path))
        for path in (settings.folder.resolve(), Path(sys.executable).with_name("marketing-sync"))
    )
    print(_NEXT_STEPS.format(cron=settings.schedule_cron, folder=folder, program=program))
    return exits.DONE


def _ask_url(url: str | None) -> str:
    if url is None and not sys.stdin.isatty():
        raise SettingsError(
            "there is no terminal to ask for the address; add --url URL, and write the key to "
            "standard input"
        )
    return url or str(click.prompt("Address of the service, like https://HOST/1"))


def _ask_key() -> str:
    key = (
        str(click.prompt("API key (hidden)", hide_input=True))
        if sys.stdin.isatty()
        else sys.stdin.readline()
    )
    if not key.strip():
        raise SettingsError(
            "standard input has no key; run `marketing-sync init --url URL < KEY-FILE`"
        )
    return key.strip()


def _write_values(file: Path, values: dict[str, str]) -> None:
    """Set these variables in `.env`, and leave its other lines unchanged."""
    file.touch(mode=0o600)
    file.chmod(0o600)
    for name, text in values.items():
        if f"{name}_FILE" in dotenv_values(file):
            unset_key(file, f"{name}_FILE")
        set_key(file, name, text)
