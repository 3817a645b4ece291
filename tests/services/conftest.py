"""PostgreSQL and Redis of this machine, and a simulated object storage, for `make test-services`."""

import logging
import shutil
import signal
import socket
import subprocess
import uuid
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.ports import free_port, is_served
from tests.waiting import wait_until

_HERE = Path(__file__).parent
#: `make test` works without the packages that these tests need; `make test-services` installs them.
collect_ignore_glob = [] if all(map(find_spec, ("moto", "psycopg2", "redis", "s3fs"))) else ["test_*.py"]
_POSTGRES = ("127.0.0.1", 5432)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(_HERE):
            item.add_marker(pytest.mark.services)


class Redis:
    """A server of the test's own, which it may kill and start again on the same port."""

    def __init__(self, folder: Path) -> None:
        program = shutil.which("redis-server")
        if program is None:
            pytest.fail("redis-server is missing: apt-get install redis-server")
        self.port = free_port()
        self.url = f"redis://127.0.0.1:{self.port}/0"
        self._command = [
            program,
            "--port",
            str(self.port),
            "--bind",
            "127.0.0.1",
            "--save",
            "",
            "--appendonly",
            "no",
            "--dir",
            str(folder),
        ]
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        self._process = subprocess.Popen(self._command, stdout=subprocess.DEVNULL)
        wait_until(lambda: is_served(self.port), "redis-server does not listen")

    def stop(self) -> None:
        """It keeps its connections and responds to nothing, until it goes on."""
        self._signal(signal.SIGSTOP)

    def go_on(self) -> None:
        self._signal(signal.SIGCONT)

    def _signal(self, number: int) -> None:
        assert self._process is not None
        self._process.send_signal(number)

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None


@pytest.fixture
def redis_server(tmp_path: Path) -> Iterator[Redis]:
    """Running, empty."""
    server = Redis(tmp_path)
    server.start()
    yield server
    server.kill()


@pytest.fixture
def postgres() -> str:
    """Host and port of a server that trusts user `postgres` and has a database `test`."""
    with socket.socket() as probe:
        is_there = not probe.connect_ex(_POSTGRES)
    if not is_there:
        pytest.fail(
            "PostgreSQL does not run on 127.0.0.1:5432: start it (on Debian: pg_ctlcluster 15 main start)"
        )
    return ":".join(map(str, _POSTGRES))


@pytest.fixture(scope="session")
def _object_storage() -> Iterator[str]:
    from moto.server import ThreadedMotoServer

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


@pytest.fixture
def bucket(_object_storage: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """The address of an empty folder of object storage, which the environment has the credentials for."""
    import fsspec

    for name, value in {
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_DEFAULT_REGION": "us-east-1",
    }.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("AWS_ENDPOINT_URL", _object_storage)
    name = f"bucket-{uuid.uuid4().hex[:8]}"
    fsspec.filesystem("s3", skip_instance_cache=True).mkdir(name)
    return f"s3://{name}/data"
