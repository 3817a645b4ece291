"""Models of the user's: SQL in a folder of a home, built behind ours in the schema `custom` and published with it.

They are compiled apart from ours, so that what is wrong in them keeps nothing of ours from being built or published. Not here: how models
are run (`models`), what a published column may show (`masking`).
"""

import json
from collections.abc import Iterable
from pathlib import Path

import duckdb

from warehouse.dbt_project import OWN, Node
from warehouse.errors import WarehouseError
from warehouse.masking import lineage
from warehouse.schema import columns_of, fact, kinds_of, note_fact
from warehouse.sql import qualified, rows

#: Names in sync.meta: what is known about the columns of the tables that stand there, and what is wrong with the models.
_COLUMNS, PROBLEM = "own_columns", "own_problem"

_TEMPLATES = Path(__file__).parent / "templates"


def new_model(folder: Path, name: str, ours: Iterable[str] = ()) -> list[Path]:
    """Write a model to begin with, and its description. WarehouseError when the name is taken, also by one of `ours`, or cannot be one of
    a table."""
    if not (name.isidentifier() and name.isascii() and name == name.lower()):
        raise WarehouseError(
            f"{name!r} cannot be a table's name: use lower-case letters, digits and `_`, with a letter first, e.g. vip_contacts"
        )
    if name in ours:
        raise WarehouseError(f"{name} is one of our models: choose another name")
    made = [folder / f"{name}.sql", folder / f"{name}.yml"]
    if taken := [path for path in made if path.exists()]:
        raise WarehouseError(f"{taken[0]} is there already: open it, or choose another name")
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    for path in made:
        text = (_TEMPLATES / f"own_model{path.suffix}").read_text(encoding="utf-8")
        path.write_text(text.replace("<<name>>", name), encoding="utf-8")
    return made


def remove_gone(connection: duckdb.DuckDBPyConnection, nodes: Iterable[Node]) -> None:
    """Drop the tables and views in `custom` whose model is gone; nobody would build them again."""
    kept = {node.relation for node in nodes}
    for relation, kind in kinds_of(connection).items():
        if relation.startswith(f"{OWN}.") and relation not in kept:
            rows(connection, f"drop {kind} {qualified(relation)}")


def note_columns(connection: duckdb.DuckDBPyConnection, built: Iterable[Node]) -> None:
    """Work out which columns of what was built are made of personal ones, as for ours: no column has to be marked.

    What was not built stays as it is, and what is known about it as well.
    """
    from warehouse.lineage import follow, listed  # parses SQL: only who has models of their own waits for it

    known, types = own_columns(connection), columns_of(connection)
    found = known | listed(follow(built, types, {**lineage()["columns"], **known}))
    note_fact(connection, _COLUMNS, json.dumps({name: columns for name, columns in found.items() if name in types}))


def own_columns(connection: duckdb.DuckDBPyConnection) -> dict[str, dict[str, list[str]]]:
    """What is known about the columns of what stands in `custom`: relation → column → the personal columns that it is made of."""
    found: dict[str, dict[str, list[str]]] = json.loads(fact(connection, _COLUMNS) or "{}")
    return found
