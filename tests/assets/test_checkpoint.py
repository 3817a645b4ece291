"""Which runs count as unfinished: those that are gone, not those at work nor those that ended."""

import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from assets.checkpoint import Checkpoints
from marketing_api.exchange import new_request_id
from warehouse.archive.archive import Archive


@contextmanager
def run(root: Path, *assets: str) -> Iterator[Checkpoints]:
    """It is gone at the end of the context, whatever it had read."""
    with Archive(root) as archive:
        made = Checkpoints(archive)
        if assets:
            made.begin_assets(assets)
        yield made


def unfinished(root: Path, assets: Iterable[str] = ("lists", "contacts", "goals")) -> set[str]:
    with run(root) as following:
        return {asset for asset in assets if following.resume_from(asset) is not None}


def test_a_run_that_left_without_ending_is_taken_up_from_its_first_request_on(tmp_path: Path) -> None:
    before = new_request_id()
    with run(tmp_path, "lists", "contacts"):
        first = new_request_id()
    with run(tmp_path) as following:
        assert before < (following.resume_from("contacts") or 0) < first
        assert following.resume_from("goals") is None


def test_the_earliest_of_several_counts(tmp_path: Path) -> None:
    with run(tmp_path, "lists") as first:
        pass
    with run(tmp_path, "lists"):
        pass
    with run(tmp_path) as following:
        assert following.resume_from("lists") == first.since


def test_a_run_that_ended_is_over(tmp_path: Path) -> None:
    with run(tmp_path, "lists") as one:
        one.end_assets(["lists"])
    assert unfinished(tmp_path) == set()


def test_a_run_at_work_is_left_alone(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path\n"
        "from tests.assets.test_checkpoint import run\n"
        "with run(Path(sys.argv[1]), 'lists'): print('at work', flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path)],
        cwd=Path(__file__).parents[2],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "at work\n"
        assert unfinished(tmp_path) == set()
        other.kill()
        other.wait()
    assert unfinished(tmp_path) == {"lists"}


def test_a_run_of_some_assets_leaves_the_others_unfinished(tmp_path: Path) -> None:
    with run(tmp_path, "lists", "contacts"):
        pass
    with run(tmp_path, "lists") as part:
        part.end_assets(["lists"])
    assert unfinished(tmp_path) == {"contacts"}
