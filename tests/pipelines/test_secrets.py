"""The key is nowhere but on the wire, at any log level; addresses are in no log and not in Dagster's storage."""

from pathlib import Path

import duckdb
import pytest

from marketing_api.sandbox.cli import spawn
from tests.pipelines.running import Ran, finish, start
from tests.pipelines.sandboxes import Sandbox

KEY = "unmistakable-key-7d41c9"


@pytest.fixture(scope="module")
def left_behind(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Ran]:
    """A home after a night with faults at debug level, and what was printed."""
    home = tmp_path_factory.mktemp("secrets") / "home"
    faults = ("--fault-reset", "0.02", "--fault-502-html", "0.02", "--fault-500-before", "0.02", "--fault-1002", "1@goal/lists")
    with spawn("--rate-limit", "0", "--contacts", "100", "--key", KEY, *faults) as url:
        sandbox = Sandbox(url)
        settings = {"MARKETING_API_KEY": KEY, "MARKETING_LOG": "DEBUG"}
        ran = finish(start(home, sandbox, "sync", **settings))
        called = finish(start(home, sandbox, "call", "user/lists", **settings))
    return home, Ran(ran.code, ran.out + called.out, ran.err + called.err)


def test_the_key_is_not_printed_at_debug_level(left_behind: tuple[Path, Ran]) -> None:
    _, ran = left_behind
    assert ran.code == 1, ran.text[-800:]  # goals are not available, the rest is there
    assert KEY not in ran.text


def test_the_key_is_in_no_file(left_behind: tuple[Path, Ran]) -> None:
    home, _ = left_behind
    files = [path for path in home.rglob("*") if path.is_file()]
    assert len(files) > 5
    assert [path.name for path in files if KEY.encode() in path.read_bytes()] == []


def test_the_key_is_in_no_compressed_body(left_behind: tuple[Path, Ran]) -> None:
    home, _ = left_behind
    files = f"{home}/archive/requests/**/*.parquet"
    (rows, bodies, with_key) = duckdb.execute(
        "select count(*), count(body), count(*) filter (contains(a::varchar, ?)) from read_parquet(?) a", [KEY, files]
    ).fetchall()[0]
    assert rows > 300
    assert bodies > 100
    assert with_key == 0


def test_addresses_are_in_no_log_and_not_in_dagsters_storage(left_behind: tuple[Path, Ran]) -> None:
    home, ran = left_behind
    with duckdb.connect(str(home / "warehouse.duckdb"), read_only=True) as connection:
        addresses = [email for (email,) in connection.execute("select distinct email from source.contacts").fetchall()]
    assert len(addresses) > 50
    storage = b"".join(path.read_bytes() for path in (home / "dagster").rglob("*") if path.is_file())
    assert [email for email in addresses if email in ran.err or email.encode() in storage] == []
