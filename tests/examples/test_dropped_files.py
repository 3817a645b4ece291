"""`docs/sending-back.md`: the script pushes each file once, and puts it away with what became of it."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.pipelines.running import environment
from tests.pipelines.sandboxes import Sandbox
from tests.pipelines.tables import query

PAGE = Path(__file__).parents[2] / "docs/sending-back.md"


@pytest.mark.slow
def test_each_file_is_pushed_once_and_put_away(service: Sandbox, home: Path, tmp_path: Path) -> None:
    ((email,),) = query(home, "select min(email) from source.contacts where status = 'active'")
    script, folder = tmp_path / "push-dropped", tmp_path / "drop"
    found = re.search(r"```bash\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert found
    script.write_text(found[1])
    folder.mkdir()
    files = {"a good one.csv": email, "bad.csv": "nobody", "new.csv": email, ".hidden.csv": email}
    for name, who in files.items():
        (folder / name).write_text(f"email,tag\n{who},vip\n")
        if name != "new.csv":
            os.utime(folder / name, (0, 0))
    programs = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    for _ in range(2):
        ran = subprocess.run(
            ["sh", str(script), "tags", str(folder)],
            env=environment(home, service, PATH=programs),
            check=False,
        )
        assert ran.returncode == 0
    assert sorted(path.name for path in folder.iterdir() if path.is_file()) == [
        ".hidden.csv",
        ".lock",
        "new.csv",
    ]
    done, failed = (sorted(path.name[16:] for path in (folder / to).iterdir()) for to in ("done", "failed"))
    assert (done, failed) == (["a good one.csv", "a good one.csv.txt"], ["bad.csv", "bad.csv.txt"])
    assert [each["operation"] for each in service.asked()] == ["app/me", "emailmarketing/addtag"]
    assert "not an e-mail address" in "".join(path.read_text() for path in (folder / "failed").glob("*.txt"))
