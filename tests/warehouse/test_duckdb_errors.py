"""DuckDB's error texts are read in one module, for the version here: look before taking a new one."""

import re
from pathlib import Path

import duckdb
import pytest

from warehouse import duckdb_errors
from warehouse.duckdb_errors import FileInUse
from warehouse.errors import WarehouseDamaged

#: The version whose texts `duckdb_errors` knows. When this fails: run `tests/warehouse/test_connection.py`,
#: `test_publish.py` and `tests/attack/test_damage.py`, which make each case happen, mend the texts, and write
#: the new version here.
KNOWN = "2.0."


def test_the_texts_are_those_of_the_installed_version() -> None:
    assert duckdb.__version__.startswith(KNOWN)


def test_other_settings_than_an_open_instance_has_count_as_held(tmp_path: Path) -> None:
    path = tmp_path / "warehouse.duckdb"
    with duckdb.connect(str(path)), pytest.raises(duckdb.Error) as caught:
        duckdb.connect(str(path), read_only=True)
    assert isinstance(duckdb_errors.explain_unopened(path, caught.value), FileInUse)


def test_a_file_that_is_none_of_duckdbs_is_damaged(tmp_path: Path) -> None:
    path = tmp_path / "warehouse.duckdb"
    path.write_bytes(b"something else" * 1_000)
    with pytest.raises(duckdb.Error) as caught:
        duckdb.connect(str(path))
    assert isinstance(duckdb_errors.explain_damage(path, caught.value), WarehouseDamaged)
    assert not duckdb_errors.is_full(caught.value)
    assert not duckdb_errors.is_locked(caught.value)


def test_no_other_module_of_the_package_reads_the_texts() -> None:
    """What else catches DuckDB's errors goes by their types."""
    reading = re.compile(
        r"(?<![\"'])[\"'](Could not set lock|No space left|Corrupt|not a valid DuckDB|newer "
        r"version of DuckDB)"
    )
    package = Path(duckdb_errors.__file__).parent
    assert [path.name for path in package.rglob("*.py") if reading.search(path.read_text())] == [
        "duckdb_errors.py"
    ]
