"""The inbox: files dropped into `inbox/<kind>/` of the home are pushed, then moved to `done/` or `failed/` with a result beside.
With several accounts it is `inbox/<account>/<kind>/`.

A file stays where it is until the run that pushes it has ended, and is judged by how that ended: a run that dies, or a daemon that
is stopped, loses nothing, and what a file says is never sent twice (the outbox sees to that). Not here: the push (`jobs`).
"""

import hashlib
import json
import os
import shutil
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import dagster as dg
import msgspec
from dagster._core.execution.plan.objects import UserFailureData

from marketing_api.discretion import without_addresses
from pipelines.settings import Settings
from pipelines.write_back.accounts import account_of
from pipelines.write_back.item import Kind
from pipelines.write_back.outbox.outbox import Outbox, outbox_path
from pipelines.write_back.reporting.rejected import folder_of
from pipelines.write_back.reporting.report import result_lines
from pipelines.write_back.reporting.result import result_of

#: Deletions need a person who says how many.
KINDS = tuple(kind for kind in Kind if kind is not Kind.DELETIONS)
DONE, FAILED = "done", "failed"
#: A file is complete when it has not changed for so long, and not since the last look.
_STILL_S = 5.0
_LOOK_S = 30
#: Names that programs give to files they have not finished.
_UNFINISHED = (".part", ".partial", ".tmp", ".crdownload", ".filepart", ".swp")

#: Of a run: which content it pushes, and the file (name and time of change) that it was started for.
CONTENT_TAG, FILE_TAG = "marketing-sync/inbox-content", "marketing-sync/inbox-file"

_ENDED = {dg.DagsterRunStatus.SUCCESS: DONE, dg.DagsterRunStatus.FAILURE: FAILED, dg.DagsterRunStatus.CANCELED: FAILED}


@dataclass(frozen=True, slots=True)
class Dropped:
    """A file in the inbox as of now."""

    kind: Kind
    account: str
    path: Path
    size: int
    changed_ns: int

    @property
    def name(self) -> str:
        return f"{self.account}/{self.kind}/{self.path.name}"

    @property
    def look(self) -> list[int]:
        return [self.size, self.changed_ns]

    def content(self) -> str:
        """Account, kind and hash of what is in it."""
        with self.path.open("rb") as stream:
            return f"{self.account}-{self.kind}-{hashlib.file_digest(stream, 'sha256').hexdigest()[:24]}"


def inbox_sensor(settings: Settings, jobs: Mapping[str, dg.JobDefinition]) -> dg.SensorDefinition:
    """Watches the inbox of the home; `jobs` are those of `push_jobs` by name. Off until somebody turns it on."""

    @dg.sensor(
        name="inbox",
        jobs=[jobs[f"push_{kind}"] for kind in KINDS],
        minimum_interval_seconds=_LOOK_S,
        default_status=dg.DefaultSensorStatus.STOPPED,
        description="Pushes files that are dropped into inbox/<kind>/ of the home, and moves them to done/ or failed/ with a result.",
    )
    def inbox(context: dg.SensorEvaluationContext) -> dg.SensorResult:
        folders = make_folders(settings)
        before = _looks(context.cursor)
        files = dropped(folders)
        requests = [request for file in files if (request := _try_to_judge(settings, context, file, before.get(file.name)))]
        return dg.SensorResult(run_requests=requests, cursor=json.dumps({file.name: file.look for file in files}))

    return inbox


def _looks(cursor: str | None) -> dict[str, list[int]]:
    """How each file looked last time; what cannot be read costs one more look."""
    try:
        return msgspec.json.decode(cursor or "{}", type=dict[str, list[int]])
    except ValueError:
        return {}


def make_folders(settings: Settings) -> dict[Path, tuple[str, Kind]]:
    """Where files are dropped, for which account and kind."""
    root, names = settings.home / "inbox", [each.account for each in settings.accounts]
    accounts = {name: root / name for name in names} if len(names) > 1 else {account_of(settings, None): root}
    folders: dict[Path, tuple[str, Kind]] = {folder / kind.value: (name, kind) for name, folder in accounts.items() for kind in KINDS}
    for folder in folders:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return folders


def dropped(folders: Mapping[Path, tuple[str, Kind]]) -> list[Dropped]:
    """The files in the inbox, oldest first, without those that a program is still writing under another name."""
    found = []
    for folder, (account, kind) in folders.items():
        for path in folder.glob("*"):
            if path.name.startswith((".", "~")) or path.suffix.lower() in _UNFINISHED or not path.is_file():
                continue
            about = path.stat()
            found.append(Dropped(kind, account, path, about.st_size, about.st_mtime_ns))
    return sorted(found, key=lambda file: file.changed_ns)


def _try_to_judge(settings: Settings, context: dg.SensorEvaluationContext, file: Dropped, before: list[int] | None) -> dg.RunRequest | None:
    """A file that cannot be read, or is taken away meanwhile, does not keep the others waiting."""
    try:
        return _judge(settings, context, file, before)
    except OSError as problem:
        context.log.warning(f"a file in inbox/{file.kind} cannot be looked at: {problem.strerror}")
        return None


def _judge(settings: Settings, context: dg.SensorEvaluationContext, file: Dropped, before: list[int] | None) -> dg.RunRequest | None:
    """Start a run for the file, or move it where its run's end says, or leave it for a later look."""
    if file.look != before or time.time() - file.changed_ns / 1e9 < _STILL_S:
        return None
    content = file.content()
    runs = context.instance.get_runs(dg.RunsFilter(tags={CONTENT_TAG: content}), limit=100)
    latest = runs[0] if runs else None
    if latest is None:
        return _request(file, content, 0)
    if latest.status not in _ENDED:
        return None
    was_for_it = latest.tags.get(FILE_TAG) == _file_tag(file)
    if latest.status is dg.DagsterRunStatus.SUCCESS or was_for_it:
        told = _Told(context.instance, settings.home, [run.run_id for run in runs])
        put_away(file, _ENDED[latest.status], told, was_for_it)
        return None
    return _request(file, content, len(runs))  # it failed before and was dropped again: somebody wants it tried again


def _request(file: Dropped, content: str, tries: int) -> dg.RunRequest:
    config = {"ops": {f"plan_{file.kind}": {"config": {"from": str(file.path), "account": file.account, "dry_run": False}}}}
    tags = {CONTENT_TAG: content, FILE_TAG: _file_tag(file)}
    return dg.RunRequest(run_key=f"{content}-{tries}", job_name=f"push_{file.kind}", run_config=config, tags=tags)


def _file_tag(file: Dropped) -> str:
    """Names may hold anything; a tag may not."""
    return f"{hashlib.sha256(file.path.name.encode()).hexdigest()[:16]}-{file.changed_ns}"


def put_away(file: Dropped, where: str, told: "_Told", was_for_it: bool) -> Path:
    """Move the file to done/ or failed/, with what became of it beside; the result is written first, so that none is without."""
    folder = file.path.parent / where
    folder.mkdir(mode=0o700, exist_ok=True)
    target = _free(folder / file.path.name)
    said = [] if was_for_it else ["the same content was pushed before; nothing was sent again"]
    target.with_name(f"{target.name}.result.txt").write_text("\n".join([*said, *told.lines()]) + "\n", encoding="utf-8")
    if rejected := told.rejected():
        shutil.copyfile(rejected, target.with_name(f"{target.name}.rejected.csv"))
    os.utime(file.path)  # dropped again, it is another file
    file.path.replace(target)
    return target


class _Told:
    """What is known of the runs that pushed a content, the latest first (a rerun from failure goes on with the same push)."""

    def __init__(self, instance: dg.DagsterInstance, home: Path, run_ids: list[str]) -> None:
        self._instance, self._home, self._run_ids = instance, home, run_ids
        self._push_id: int | None = None
        if outbox_path(home).exists():
            with Outbox(outbox_path(home)) as outbox:
                self._push_id = next((push.push_id for push in outbox.pushes() if push.run in run_ids), None)

    def lines(self) -> list[str]:
        """What happened, in words without addresses."""
        run_id = self._run_ids[0]
        first = [f"run {run_id} of the Dagster UI", *(f"failed: {reason}" for reason in self._reasons(run_id))]
        if self._push_id is None:
            return [*first, "nothing was sent", *self._rejected_rows(run_id)]
        with Outbox(outbox_path(self._home)) as outbox:
            result = result_of(outbox, self._push_id, spent=None, rejected_csv=self.rejected())
        return [*first, *map(without_addresses, result_lines(result))]

    def rejected(self) -> Path | None:
        """The rejected rows, when there are any."""
        path = folder_of(self._home, self._push_id) / "rejected.csv"
        return path if self._push_id is not None and path.exists() else None

    def _reasons(self, run_id: str) -> list[str]:
        return [each.description for each in self._failures(run_id) if each.description]

    def _rejected_rows(self, run_id: str) -> list[str]:
        """Which rows a push was refused for, as its plan told the UI."""
        tables = [each.metadata.get("rejected rows") for each in self._failures(run_id)]
        return ["", *(str(table.value) for table in tables if table)] if any(tables) else []

    def _failures(self, run_id: str) -> list[UserFailureData]:
        events = [log.dagster_event for log in self._instance.all_logs(run_id, of_type=dg.DagsterEventType.STEP_FAILURE)]
        told = [event.step_failure_data.user_failure_data for event in events if event]
        return [each for each in told if each]


def _free(path: Path) -> Path:
    """A name that is not taken."""
    candidate, number = path, 1
    while candidate.exists():
        number += 1
        candidate = path.with_name(f"{path.stem}-{number}{path.suffix}")
    return candidate
