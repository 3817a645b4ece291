"""The accounts that receive requests. If none is configured, the embedded sandbox: a process on
loopback whose writes the home keeps."""

import datetime as dt
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager

from home.door import sandbox_state
from home.folder import prepare_home
from home.identity import check_kind
from home.settings import SANDBOX_ACCOUNT, Settings, SettingsError, account_of
from marketing_api.client import Connection
from marketing_api.errors import BrokenResponse, Unreachable
from marketing_api.redaction import Secret


@contextmanager
def open_connections(
    settings: Settings, *, sandbox_now: dt.datetime | None = None
) -> Iterator[tuple[Connection, ...]]:
    """The accounts, for the duration of the context. `sandbox_now`: the fixed time of the embedded
    sandbox's clock. Raises SettingsError if the accounts are of another kind than the home, or if
    the sandbox does not start."""
    check_kind(settings)
    if not settings.is_sandbox:
        yield settings.accounts
    elif settings.sandbox_url:
        yield (_sandbox_connection(settings.sandbox_url, settings),)
    else:
        # a separate program, which configured accounts don't need
        from marketing_api.sandbox.server import spawn

        prepare_home(settings.home, settings.lock_seconds)
        with ExitStack() as stack:
            options = [f"--contacts={settings.sandbox_contacts}"]
            options.append(f"--state={sandbox_state(settings.home)}")
            if sandbox_now is not None:
                options.append(f"--now={sandbox_now:%Y-%m-%dT%H:%M}")
            try:
                process = spawn(*options)
                url = stack.enter_context(process)
            except RuntimeError as error:
                raise SettingsError(f"{error}; `marketing-sync sandbox` shows why") from None
            yield (_sandbox_connection(url, settings),)


def known_accounts(settings: Settings) -> tuple[Connection, ...]:
    """The accounts, without checking that they respond: for commands that send nothing. Raises
    SettingsError if they are of another kind than the home."""
    check_kind(settings)
    return settings.accounts or (
        _sandbox_connection(settings.sandbox_url or "http://127.0.0.1/1", settings),
    )


def choose_account(
    settings: Settings, accounts: Iterable[Connection], name: str | None
) -> Connection:
    """The account that is meant (`account_of`). Raises SettingsError."""
    account = account_of(settings, name)
    return next(connection for connection in accounts if connection.account == account)


def explain_refusal(connection: Connection, error: Exception) -> str:
    """Why an account could not be opened, with what to check."""
    if isinstance(error, Unreachable | BrokenResponse):
        return f"{error}; is {connection.url} the right address, and is the service up?"
    return str(error)


def _sandbox_connection(url: str, settings: Settings) -> Connection:
    from marketing_api.sandbox.options import DEFAULT_KEY

    return Connection(
        SANDBOX_ACCOUNT, url, Secret(DEFAULT_KEY), settings.max_rate, budget_url=settings.budget_url
    )
