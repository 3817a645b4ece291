"""What a shell proposes for a value that is being typed. It goes by files of this machine alone, and proposes
nothing where they cannot be read: nobody wants an error at the prompt."""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from click.shell_completion import CompletionItem

from home.account_files import declared_accounts
from home.settings import SANDBOX_ACCOUNT, load_settings


def list_proposals(metavar: str, begun: str) -> list[CompletionItem]:
    """For a value of the kind that the metavar names, and that begins so."""
    kind = metavar.strip("[.]")
    if kind in ("FILE", "DIR"):
        return [CompletionItem(begun, type=kind.lower())]
    try:
        return [CompletionItem(word) for word in _WORDS[kind]() if word.startswith(begun)]
    except Exception:  # also of a kind that has no words
        return []


def _list_accounts() -> Iterable[str]:
    return declared_accounts(Path("accounts.toml")) or (SANDBOX_ACCOUNT,)


def _list_activations() -> Iterable[str]:
    from write_back.audience_syncs import read_audience_syncs

    return read_audience_syncs(Path())


def _list_assets() -> Iterable[str]:
    from warehouse.tables import TABLES

    return TABLES


def _list_operations() -> Iterable[str]:
    from marketing_api.operations import ALL

    return ALL


def _list_tables() -> Iterable[str]:
    """Of what is published, with the schema and without."""
    from warehouse.publish import open_published, published_path
    from warehouse.sql import fetch_rows

    with open_published(published_path(load_settings(Path.cwd()).home)) as connection:
        found = fetch_rows(
            connection, "select schema_name, table_name from duckdb_tables() where not internal"
        )
    return [name for schema, table in sorted(found) for name in (f"{schema}.{table}", table)]


_WORDS: Mapping[str, Callable[[], Iterable[str]]] = {
    "ACCOUNT": _list_accounts,
    "ACTIVATION": _list_activations,
    "ASSET": _list_assets,
    "OPERATION": _list_operations,
    "TABLE": _list_tables,
}
