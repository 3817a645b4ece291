"""The warehouse that the tests of marts look into: built once, nobody writes to it."""

import datetime as dt
import importlib.util
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import duckdb
import pytest

from tests.conftest import Once
from tests.warehouse.marts import by_hand
from tests.warehouse.marts.expected import Source
from tests.warehouse.marts.generate import ACCOUNTS, ZONES, generated
from tests.warehouse.marts.rows import read, together, write
from warehouse.models import ModelSettings, build_models

NOTEBOOKS = Path(__file__).parents[3] / "notebooks"


@pytest.fixture(scope="session")
def built(once: Once) -> Path:
    """The file with all models over the made-up accounts and the one by hand."""
    return once("marts", _build) / "warehouse.duckdb"


def _build(folder: Path) -> None:
    path = folder / "warehouse.duckdb"
    write(path, together([generated(), *by_hand.PARTS]))
    report = build_models(path, ModelSettings(zones={"hill": ACCOUNTS["hill"][0]}))
    assert not report.failure_summary, report.failure_summary


@pytest.fixture(scope="session")
def marts(built: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    """It, open for reading."""
    with duckdb.connect(str(built), read_only=True) as connection:
        connection.begin()  # now() is when the transaction began: queries agree on the time
        yield connection


@pytest.fixture(scope="session")
def source(marts: duckdb.DuckDBPyConnection) -> Source:
    """What the marts were made from."""
    return Source(
        read(marts, "source"), read(marts, "sync"), ZONES | {by_hand.ACCOUNT: by_hand.ZONE}, _now(marts)
    )


def _now(connection: duckdb.DuckDBPyConnection) -> dt.datetime:
    ((moment,),) = connection.execute("select epoch_us(now())").fetchall()
    return dt.datetime(1970, 1, 1, tzinfo=dt.UTC) + dt.timedelta(microseconds=moment)


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Runs a notebook with what is chosen in it; what its cells define."""
    monkeypatch.syspath_prepend(str(NOTEBOOKS))

    def run_one(name: str, home: Path, **chosen: Any) -> dict[str, Any]:
        monkeypatch.setenv("MARKETING_HOME", str(home))
        spec = importlib.util.spec_from_file_location(name, NOTEBOOKS / f"{name}.py")
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        outputs, defined = module.app.run(
            {key: SimpleNamespace(value=value) for key, value in chosen.items()} or None
        )
        return {**dict(defined), "shown": "".join(getattr(one, "text", "") or "" for one in outputs)}

    return run_one
