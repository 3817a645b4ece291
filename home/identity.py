"""Whose data a home holds: that of live accounts or the sandbox's, and the business of each account
name. `identity.json` of the home says so.

Belongs here: that file, and the one comparison before anything is loaded, planned, sent or
forgotten at the service. Nothing of another business's response is recorded, and its client sends
nothing more. A person confirms another business or address with `doctor --accept-business`. Not
here: the request that the comparison needs (the first one of a session or a push). If the service
names no business, listings are compared (`assets.account_session`)."""

import secrets
from contextlib import suppress
from pathlib import Path
from typing import Literal

import duckdb
import msgspec

from home.door import archive_of, open_warehouse, sandbox_state
from home.exits import HomeError
from home.settings import Settings, SettingsError, account_of, missing_key
from marketing_api.errors import OtherBusiness
from marketing_api.exchange import Connection, Response
from marketing_api.operations import account as operations
from warehouse.disk import DAMAGED_JSON, hold_lock, no_folder, write_file
from warehouse.sql import fetch_records

FILE = "identity.json"
Kind = Literal["", "live", "sandbox"]
LIVE: Kind = "live"
SANDBOX: Kind = "sandbox"
_LOADED = (
    "select business_id, business_name, service_name from source.business where account = "
    "$account and _deleted_at is null"
)


class Owner(msgspec.Struct, frozen=True, omit_defaults=True):
    """The business of an account name, if the service names it, and its address (`sandbox` for a
    sandbox); None where the home doesn't say."""

    business_id: int | None = None
    business_name: str | None = None
    service_name: str | None = None
    address: str | None = None

    def __str__(self) -> str:
        number = None if self.business_id is None else f"id {self.business_id}"
        more = ", ".join(
            filter(None, [number, self.service_name, self.address or "address unknown"])
        )
        return f"{self.business_name or 'a business without a name'} ({more})"

    @property
    def is_named(self) -> bool:
        return any(
            part is not None for part in (self.business_id, self.business_name, self.service_name)
        )

    def merge_with(self, other: "Owner") -> "Owner":
        """Completed with values that only the other one has."""
        known = {name: had for name, had in msgspec.structs.asdict(self).items() if had is not None}
        return msgspec.structs.replace(other, **known)


class Identity(msgspec.Struct):
    """`kind`: LIVE or SANDBOX, after anything was read; `accounts`: by name."""

    home_id: str = ""
    kind: Kind = ""
    accounts: dict[str, Owner] = {}

    @property
    def owners(self) -> str:
        return (
            ", ".join(f"{name} is {owner}" for name, owner in self.accounts.items())
            or "no account was read yet"
        )

    def __str__(self) -> str:
        return (
            f"{self.kind}: {self.owners}"
            if self.kind
            else "nothing was read yet, neither from a live account nor from the sandbox"
        )


def find_difference(known: Owner, found: Owner) -> str:
    """Why it is not the known business; empty if it is.

    The address is compared first, since each service has its own ids: at another address, the same
    id may be another business. At the same address, the id stays when a business is renamed."""
    if known == Owner():
        return ""
    if known.address is None:
        return "the home doesn't record from which address its data was read"
    if known.address != found.address:
        return "the address has changed"
    if None not in (known.business_id, found.business_id):
        is_same = known.business_id == found.business_id
    else:
        is_same_service = known.service_name in (None, found.service_name)
        is_same = not known.is_named or (
            known.business_name == found.business_name and is_same_service
        )
    return "" if is_same else "the key belongs to another business than before"


def identity_of(home: Path) -> Identity:
    """The identity as recorded; for a home of an earlier version, as its files show. Raises
    HomeError."""
    path = home / FILE
    try:
        return msgspec.json.decode(path.read_bytes(), type=Identity)
    except (FileNotFoundError, NotADirectoryError):
        # the embedded sandbox creates its file first
        is_live = archive_of(home).exists() and not sandbox_state(home).exists()
        return Identity(kind=LIVE if is_live else "")
    except (IsADirectoryError, *DAMAGED_JSON) as error:
        raise HomeError(
            f"{path}, which records whose data is in the home, can't be read ({error}): restore it "
            "from a backup, or move it away and confirm each account with `marketing-sync doctor "
            "--accept-business ACCOUNT`"
        ) from None


def account_in_home(settings: Settings, name: str | None) -> str:
    """See `account_of`; the name may also be that of an account that is no longer configured."""
    if name and name in identity_of(settings.home).accounts:
        return name
    return account_of(settings, name)


def _kind_of(settings: Settings) -> Kind:
    return SANDBOX if settings.is_sandbox else LIVE


def check_kind(settings: Settings) -> None:
    """A home is live or the sandbox's forever, and the sandbox is only used if it was chosen.
    Raises SettingsError."""
    if settings.shards:  # each shard has its own home
        return
    identity = identity_of(settings.home)
    kind = _kind_of(settings)
    if identity.kind in ("", kind) or (settings.sandbox_url and not identity.home_id):
        if settings.is_key_missing:
            raise missing_key(settings)
        return
    holds = f"the home {settings.home} holds {identity.kind} data ({identity.owners})"
    if kind == SANDBOX:
        raise SettingsError(
            f"{holds}, and no key is configured: set MARKETING_API_KEY and MARKETING_API_URL, or "
            "run where `.env` or accounts.toml is; for the sandbox set another MARKETING_HOME. "
            "Nothing was read or sent"
        )
    raise SettingsError(
        f"{holds}: set MARKETING_HOME to another folder for live accounts. Nothing was read or sent"
    )


class Recognition:
    """The owner of an account's data. A client accepts responses by it: each response of `app/me`
    is compared.

    `is_known`: whether the service has named the business before. If not, only the data can show
    it, and the code that compares the data calls `note_identity`. Otherwise the found business is
    recorded immediately, if it `notes` anything."""

    def __init__(self, settings: Settings, connection: Connection, *, notes: bool = False) -> None:
        self._settings = settings
        self._connection = connection
        self._notes = notes
        self._known = self._found = known_owner(settings, connection.account)
        self.is_known = self._known.is_named

    def __call__(self, response: Response) -> None:
        """Raises OtherBusiness."""
        if response.call.operation is not operations.ME:
            return
        known = self._known
        account = self._connection.account
        self._found = owner_in(response, self._settings, self._connection)
        why = find_difference(known, self._found)
        _check_name(identity_of(self._settings.home), account, self._found)
        if why:
            raise OtherBusiness(
                f"{why}: the account {account} of this home has the data of {known}, but "
                f"{self._found} responds. Nothing was loaded or sent. Set the key and address of "
                f"{known.business_name or 'the first one'}, or another MARKETING_HOME; if the "
                "change is intended, confirm it with `marketing-sync doctor --accept-business "
                f"{account}`"
            )
        if self._notes and (self.is_known or not self._settings.warehouse_path.exists()):
            self.note_identity()

    def note_identity(self) -> None:
        note_owner(self._settings, self._connection.account, self._found.merge_with(self._known))


def _check_name(identity: Identity, account: str, owner: Owner) -> None:
    """Raises OtherBusiness if the home has the business of a new account under another name: all
    its data would be there twice."""
    if account in identity.accounts or owner.business_id is None:
        return
    for name, known in identity.accounts.items():
        if (known.business_id, known.address) == (owner.business_id, owner.address):
            raise OtherBusiness(
                f"the home has the data of {owner} as the account {name}: nothing was loaded or "
                f"sent. Use the name {name} instead of {account}, correct its key, or set another "
                "MARKETING_HOME"
            )


def owner_in(response: Response, settings: Settings, connection: Connection) -> Owner:
    """The business that a response of `app/me` names."""
    from marketing_api.parsing import business_of  # its dependencies are not needed by a plan

    # the embedded sandbox uses another port each time, and belongs to no business
    address = SANDBOX if settings.is_sandbox else connection.url
    business = business_of(response)
    if not business:
        return Owner(address=address)
    return Owner(business.business_id, business.business_name, business.service_name, address)


def known_owner(settings: Settings, account: str) -> Owner:
    """The owner as recorded, or as in the warehouse; the service is not asked. Raises HomeError,
    and what `open_database` raises."""
    owner = identity_of(settings.home).accounts.get(account)
    if owner:
        return owner
    if settings.warehouse_path.exists():
        with (
            open_warehouse(settings, read_only=True) as connection,
            suppress(duckdb.CatalogException),
        ):
            return next(
                (Owner(**row) for row in fetch_records(connection, _LOADED, {"account": account})),
                Owner(),
            )
    return Owner()


def note_owner(settings: Settings, account: str, owner: Owner) -> None:
    """Record the owner durably. A home gets its id and kind with its first account. Raises
    OtherBusiness."""
    with hold_lock(settings.home):  # sessions are opened in parallel
        before = identity_of(settings.home)
        _check_name(before, account, owner)
        home_id = before.home_id or secrets.token_hex(8)
        noted = Identity(home_id, _kind_of(settings), before.accounts | {account: owner})
        if noted != before:
            write_file(no_folder(settings.home / FILE), msgspec.json.encode(noted))
