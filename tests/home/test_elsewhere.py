"""Systems other than Linux: what only Linux tells is done without."""

import json
from pathlib import Path

import pytest

from tests.fixtures import StartSandbox
from tests.pipelines.running import Ran, finish, start


@pytest.mark.attack
def test_a_night_a_push_and_a_forgetting_do_without_proc(start_sandbox: StartSandbox, home: Path) -> None:
    sandbox = start_sandbox("--contacts", "20")

    def run(*words: str) -> Ran:
        return finish(start(home, sandbox, *words, module="tests.home.elsewhere"))

    for words in (
        ["sync"],
        ["push", "tags", "--apply", "--sql", "select email, 'vip' as tag from source.contacts limit 3"],
        ["status"],
        ["forget", "nobody@example.com", "--apply"],
    ):
        ran = run(*words)
        assert (ran.code, "Traceback" in ran.text) == (0, False), ran.text[-2000:]
    found = json.loads(run("doctor", "--json").out)
    assert "memory" not in {finding["what"] for finding in found["findings"]}
