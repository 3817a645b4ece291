"""`warehouse/lineage.json` is as the models' SQL: `python -m tests.warehouse.test_lineage` writes it."""

import json
import tempfile
from collections.abc import Iterable
from pathlib import Path

import duckdb
import pytest

from tests.warehouse.lineage import NOTHING, UNKNOWN, Derived, Reading, Types, follow, listed, scopes_of
from warehouse.connection import open_database
from warehouse.dbt_project import Node
from warehouse.masking import LINEAGE
from warehouse.models import ModelSettings, build_models
from warehouse.schema import columns_of, ensure_schema


class _Origins(Reading):
    """What is counted, chosen or ordered counts as used: that is where a figure comes from."""

    tells_nothing, chooses = (), {}


def made_of(models: Iterable[Node], types: Types) -> Derived:
    """Model → column → the columns (`schema.table.column`) that its value is made of, as far as known."""
    known = {
        relation: {name: frozenset({f"{relation}.{name}"}) for name in columns}
        for relation, columns in types.items()
    }
    found: Derived = {}
    for node, scope in scopes_of(models, types):
        columns = found.setdefault(node.relation, dict.fromkeys(types[node.relation], NOTHING))
        for name, sources in _Origins(known).outputs(scope) if scope else ():
            columns[name] |= {
                source for source in sources - UNKNOWN if not source.startswith(f"{node.relation}.")
            }
    return found


def lineage_json(path: Path) -> str:
    """The text of `lineage.json`, a line per table. `path`: where to make a warehouse without rows."""
    with open_database(path) as connection:
        ensure_schema(connection)
    build_models(path)
    models = [node for node in ModelSettings().list_nodes() if not node.is_test]
    with duckdb.connect(str(path), read_only=True) as connection:
        types = columns_of(connection)
    derived = {
        "columns": listed(follow(models, types)),
        "made_of": listed(made_of(models, types)),
    }
    parts = []
    for part, entries in derived.items():
        lines = ",\n".join(f"  {json.dumps(name)}: {json.dumps(entry)}" for name, entry in entries.items())
        parts.append(f" {json.dumps(part)}: {{\n{lines}\n }}")
    return "{\n" + ",\n".join(parts) + "\n}\n"


@pytest.mark.slow
def test_the_lineage_is_as_the_models_are(tmp_path: Path) -> None:
    found = LINEAGE.read_text(encoding="utf-8")
    assert found == lineage_json(tmp_path / "warehouse.duckdb"), (
        "run `python -m tests.warehouse.test_lineage`"
    )


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        LINEAGE.write_text(lineage_json(Path(folder) / "warehouse.duckdb"), encoding="utf-8")
