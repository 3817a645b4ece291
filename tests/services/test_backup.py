"""A machine is lost in the middle of a night: its home comes back, and nothing that was backed up is
requested again."""

from __future__ import annotations

import shutil
import time
from collections import Counter
from pathlib import Path

from home.settings import Settings
from tests.fixtures import NOW
from tests.pipelines.running import finish, start
from tests.pipelines.sandboxes import Sandbox, spawned
from tests.pipelines.tables import differing, rows, source
from upkeep.backups import back_up_home
from warehouse.archive import Archive

#: Requested by every run, whatever was read before: whose key it is, the last days of three tables, and two
#: pages of the calendar's.
_GREETINGS = 6


def archived(home: Path) -> int:
    """Responses that the home has."""
    with Archive(home / "archive") as archive:
        return sum(table.num_rows for _, table in archive.exchanges())


def test_a_machine_lost_in_the_middle_of_a_sync_costs_what_was_not_backed_up(
    bucket: str, tmp_path: Path
) -> None:
    lost, undisturbed = tmp_path / "lost" / "home", tmp_path / "undisturbed" / "home"
    for home in (lost, undisturbed):
        home.parent.mkdir()
    with (
        spawned("--contacts", "100", "--now", NOW, "--rate-limit", "60") as url,
        spawned("--contacts", "100", "--now", NOW) as other,
    ):
        service = Sandbox(url)
        process = start(lost, service, "sync", "--reads-only")
        while service.count < 150:
            time.sleep(0.02)
        report = back_up_home(Settings(lost, backup_url=bucket))
        assert any(file.path.startswith("archive/requests/") for file in report.manifest.files)
        process.kill()
        process.communicate()
        before = service.count
        shutil.rmtree(lost)

        ran = finish(start(lost, service, "restore", bucket))
        assert ran.code == 0, ran.text
        known = archived(lost)
        assert known > 100
        ran = finish(start(lost, service, "sync", "--reads-only", MARKETING_BACKUP_URL=bucket))
        assert ran.code == 0, ran.text
        whole = finish(start(undisturbed, Sandbox(other), "sync", "--reads-only"))
        assert whole.code == 0, whole.text
        needed = Sandbox(other).count
        assert service.count - before <= needed - known + _GREETINGS, Counter(
            entry["operation"] for entry in service.asked(before)
        )

        found, wanted = source(lost), source(undisturbed)
        for tables in (found, wanted):
            tables.pop("sentiment_totals")  # keyed by the days asked for, which may differ
        assert differing(found, wanted) == set()

        # the night is over and backed up: losing the machine now loses nothing
        tables = rows(lost, "source") | rows(lost, "sync", "applied_at")
        shutil.rmtree(lost)
        count = service.count
        assert finish(start(lost, service, "restore", MARKETING_BACKUP_URL=bucket)).code == 0
        assert differing(rows(lost, "source") | rows(lost, "sync", "applied_at"), tables) <= {
            "contact_coverage",
            "meta",
        }
        assert service.count == count
