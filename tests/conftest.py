"""What makes the whole suite quick without changing what any test sees."""

import atexit
import fcntl
import gc
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers

from tests.depth import DEEP, examples

#: Without limits of time, which say more about what else the machine does than about the code; what fixtures
#: hold, examples share. The same examples every time: new ones are for `make attack`, where a failure is no
#: chance that somebody's unrelated change met.
_UNCHECKED = [HealthCheck.too_slow, HealthCheck.function_scoped_fixture]
settings.register_profile(
    "here",
    max_examples=examples(100),
    deadline=None,
    derandomize=not DEEP,
    suppress_health_check=_UNCHECKED,
)
settings.load_profile("here")
if not DEEP:
    # Hypothesis draws constants of all modules that are loaded: a test alone would see other examples.
    providers.is_local_module_file = lambda path: False

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # As a shell's background jobs inherit it. Programs that a test interrupts would inherit it, too.
    signal.signal(signal.SIGINT, signal.default_int_handler)

#: The long ones first: files are handed out in this order, so that both workers end at the same time.
_FIRST = (
    "tests/independent",
    "tests/attack",
    "tests/pipelines",
    "tests/upkeep",
    "tests/home",
    "tests/write_back",
    "tests/warehouse",
)


#: When the tests began, unix seconds: the same in all workers.
BEGAN_AT = int(os.environ.setdefault("TESTS_BEGAN_AT", str(int(time.time()))))
#: `once("name", make)`: the folder that `make` fills, in whichever worker needs it first; nobody writes to it
#: afterwards.
Once = Callable[[str, Callable[[Path], object]], Path]


@pytest.fixture(scope="session")
def once(tmp_path_factory: pytest.TempPathFactory) -> Once:
    """What takes long to make is made once for all workers of pytest-xdist."""
    own = tmp_path_factory.getbasetemp()
    shared = own.parent if "PYTEST_XDIST_WORKER" in os.environ else own

    def make_once(name: str, make: Callable[[Path], object]) -> Path:
        folder, made = shared / f"once-{name}", shared / f"once-{name}.made"
        with (shared / f"once-{name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not made.exists():
                folder.mkdir()  # fails where making it failed before
                make(folder)
                made.touch()
        return folder

    return make_once


@pytest.fixture(scope="session")
def empty_tables(once: Once) -> Path:
    """A file with all tables and no rows: making it anew for each test would take most of their time."""

    def make(home: Path) -> None:
        from warehouse.archive.archive import Archive
        from warehouse.warehouse import Warehouse

        with Archive(home / "archive") as archive, Warehouse(home, archive).open_for_writing():
            pass

    return once("empty", make) / "warehouse.duckdb"


def pytest_configure(config: pytest.Config) -> None:
    """All workers of pytest-xdist have one process that forks commands."""
    if config.getoption("dist", "no") != "no":
        from tests.warm import launch

        launch()


#: Modules and tests stay until the end: looking through them for garbage again and again takes a tenth of the time.
gc.disable()


def pytest_collection_finish() -> None:
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)
    gc.enable()


def _leave(worker: int) -> None:
    """End a worker without DuckDB's report of leaks, 40 lines about what Hypothesis keeps; no process that it
    forked."""
    if os.getpid() == worker:
        os._exit(0)


if "PYTEST_XDIST_WORKER" in os.environ:
    atexit.register(_leave, os.getpid())
else:

    def pytest_unconfigure() -> None:
        gc.unfreeze()  # or DuckDB's binding reports leaks


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=_place)


def _place(item: pytest.Item) -> int:
    return next((place for place, name in enumerate(_FIRST) if item.nodeid.startswith(name)), len(_FIRST))
