"""`docs/backup.md`: a copy by restic brings a lost home back."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.pipelines.running import environment
from tests.pipelines.sandboxes import Sandbox
from tests.pipelines.tables import differing, rows

PAGE = Path(__file__).parents[2] / "docs/backup.md"


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("restic"), reason="restic is not installed")
def test_a_lost_home_comes_back_from_a_copy_of_its_backup(
    service: Sandbox, home: Path, tmp_path: Path
) -> None:
    init, daily, lost = re.findall(r"```bash\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    place = tmp_path / "marketing-sync/backup"
    (tmp_path / ".restic-password").write_text("secret")
    programs = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    how = {"HOME": str(tmp_path), "MARKETING_BACKUP_DIR": str(place), "PATH": programs}

    def run(*scripts: str) -> None:
        script = "set -e\n" + "\n".join(scripts)
        subprocess.run(["sh", "-c", script], env=environment(home, service, **how), check=True)

    address = init.splitlines()[0].replace("s3:https://HOST/BUCKET/marketing-sync", str(tmp_path / "copies"))
    run("marketing-sync backup", address, *init.splitlines()[1:], daily, daily)
    before = rows(home, "source")
    shutil.rmtree(home)
    shutil.rmtree(place)
    run(address, lost)
    assert differing(before, rows(home, "source")) == set()
