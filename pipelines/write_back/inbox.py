"""The inbox: files dropped into `inbox/<kind>/` of the home are pushed, then moved to `done/` or `failed/` with a result beside.
With several accounts it is `inbox/<account>/<kind>/`.

A file stays where it is until the run that pushes it has ended, and is judged by how that ended: a run that dies, or a daemon that
is stopped, loses nothing, and what a file says is never sent twice (the outbox sees to that). Only plain files are looked into: a link
may lead anywhere, a pipe never ends. What cannot be pushed is named at each look and keeps no other waiting. Not here: the push
(`push_jobs`).
"""

import contextlib
import errno
import hashlib
import itertools
import json
import os
import shutil
import stat
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import dagster as dg
import msgspec

from marketing_api.clock import wall
from marketing_api.redaction import plain, without_addresses
from pipelines.dagster_internals import FailureData
from pipelines.options import CONFIRM, CONFIRM_WORD
from pipelines.settings import Settings
from pipelines.write_back.kinds import KINDS, Kind
from pipelines.write_back.outbox.outbox import Outbox, outbox_path
from pipelines.write_back.push_report import result_lines
from pipelines.write_back.push_service import account_of
from pipelines.write_back.rejected_rows import folder_of, free_path
from pipelines.write_back.result import result_of

#: What cannot be undone needs a person who says how many.
_KINDS = tuple(kind for kind in KINDS.values() if not kind.is_destructive)
DONE, FAILED = "done", "failed"
#: A file is complete when it has not changed for so long, and not since the last look.
_STILL_S = 5.0
_LOOK_S = 30
#: New runs, and seconds, of one look: thousands of files are taken up over several.
_MOST_RUNS, _MOST_S = 20, 20.0
#: Bytes of a name in done/ or failed/, where more is put behind it.
_LONGEST_NAME = 200
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


def content_of(account: str, kind: Kind, path: Path) -> str:
    """Account, kind and hash of what is in a file, which its run is tagged with. OSError for what is no plain file, without waiting."""
    with open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NOFOLLOW | os.O_NONBLOCK)) as stream:
        if not stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
            raise OSError(errno.EINVAL, "it is no plain file")
        return f"{account}-{kind}-{hashlib.file_digest(stream, 'sha256').hexdigest()[:24]}"


def inbox_sensor(settings: Settings, jobs: Mapping[str, dg.JobDefinition]) -> dg.SensorDefinition:
    """Watches the inbox of the home; `jobs` are those of `push_jobs` by name. Off until somebody turns it on."""

    @dg.sensor(
        name="inbox",
        jobs=[jobs[f"push_{kind}"] for kind in _KINDS],
        minimum_interval_seconds=_LOOK_S,
        default_status=dg.DefaultSensorStatus.STOPPED,
        description="Pushes files that are dropped into inbox/<kind>/ of the home, and moves them to done/ or failed/ with a result.",
    )
    def inbox(context: dg.SensorEvaluationContext) -> dg.SensorResult:
        folders = make_folders(settings)
        try:
            before = msgspec.json.decode(context.cursor or "{}", type=dict[str, list[int]])
        except ValueError:
            before = {}  # costs one more look
        files = dropped(folders, context.log.warning)
        requests = [*itertools.islice(_requests(settings, context, files, before), _MOST_RUNS)]
        return dg.SensorResult(run_requests=requests, cursor=json.dumps({file.name: file.look for file in files}))

    return inbox


def make_folders(settings: Settings) -> dict[Path, tuple[str, Kind]]:
    """Where files are dropped, for which account and kind."""
    root, names = settings.home / "inbox", [each.account for each in settings.accounts]
    accounts = {name: root / name for name in names} if len(names) > 1 else {account_of(settings, None): root}
    folders: dict[Path, tuple[str, Kind]] = {folder / kind: (name, kind) for name, folder in accounts.items() for kind in _KINDS}
    for folder in folders:
        with contextlib.suppress(OSError):  # a file of that name: `dropped` says so
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return folders


def dropped(folders: Mapping[Path, tuple[str, Kind]], warn: Callable[[str], None]) -> list[Dropped]:
    """The files in the inbox, oldest first, without those that a program is still writing under another name."""
    found = []
    for folder, (account, kind) in folders.items():
        try:
            entries = list(os.scandir(folder))
        except OSError as problem:
            warn(f"inbox/{kind} cannot be looked into: {problem.strerror}")
            continue
        for entry in entries:
            if entry.name in (DONE, FAILED) or entry.name.startswith((".", "~")) or Path(entry.name).suffix.lower() in _UNFINISHED:
                continue
            try:
                about = entry.stat(follow_symlinks=False)
            except OSError:
                continue  # taken away meanwhile
            if reason := _oddity(entry.name, about):
                warn(f"inbox/{kind}: {_shown(entry.name)} is left where it is: {reason}")
            else:
                found.append(Dropped(kind, account, folder / entry.name, about.st_size, about.st_mtime_ns))
    return sorted(found, key=lambda file: file.changed_ns)


def _oddity(name: str, about: os.stat_result) -> str:
    """Why it cannot be pushed; empty when it can."""
    if stat.S_ISLNK(about.st_mode):
        return "it is a link: put the file itself here"
    if not stat.S_ISREG(about.st_mode):
        return "it is no file"
    return "" if name.isprintable() else "its name has characters that cannot be shown: rename it"


def _shown(name: str) -> str:
    return without_addresses(plain(name).replace("\n", "\ufffd"))


def _requests(
    settings: Settings, context: dg.SensorEvaluationContext, files: list[Dropped], before: Mapping[str, list[int]]
) -> Iterator[dg.RunRequest]:
    """A file that cannot be read, put away or is taken away meanwhile does not keep the others waiting."""
    until = time.monotonic() + _MOST_S
    for file in files:
        try:
            if (request := _judge(settings, context, file, before.get(file.name))) is not None:
                yield request
        except OSError as problem:
            context.log.warning(f"inbox/{file.kind}: {_shown(file.path.name)} cannot be read or put away: {problem.strerror}")
        if time.monotonic() > until:
            return


def _judge(settings: Settings, context: dg.SensorEvaluationContext, file: Dropped, before: list[int] | None) -> dg.RunRequest | None:
    """Start a run for the file, or move it where its run's end says, or leave it for a later look."""
    if file.look != before or 0 <= wall() - file.changed_ns / 1e9 < _STILL_S:
        return None
    if file.size > settings.input_limit:
        raise OSError(errno.EFBIG, "it is larger than MARKETING_INPUT_LIMIT allows")
    content = content_of(file.account, file.kind, file.path)
    runs = context.instance.get_runs(dg.RunsFilter(tags={CONTENT_TAG: content}), limit=100)
    latest = runs[0] if runs else None
    if latest is None:
        return _request(file, content, 0)
    if latest.status not in _ENDED:
        return None
    was_for_it = latest.tags.get(FILE_TAG) == _file_tag(file)
    if latest.status is dg.DagsterRunStatus.SUCCESS or was_for_it:
        pushed = _Pushed(context.instance, settings.home, [run.run_id for run in runs])
        put_away(file, _ENDED[latest.status], pushed, was_for_it)
        return None
    return _request(file, content, len(runs))  # it failed before and was dropped again: somebody wants it tried again


def _request(file: Dropped, content: str, tries: int) -> dg.RunRequest:
    chosen = {"from": str(file.path), "account": file.account, "dry_run": False, CONFIRM.name: CONFIRM_WORD}
    config = {"ops": {f"plan_{file.kind}": {"config": chosen}}}
    tags = {CONTENT_TAG: content, FILE_TAG: _file_tag(file)}
    return dg.RunRequest(run_key=f"{content}-{tries}", job_name=f"push_{file.kind}", run_config=config, tags=tags)


def _file_tag(file: Dropped) -> str:
    """Names may hold anything; a tag may not."""
    return f"{hashlib.sha256(file.path.name.encode()).hexdigest()[:16]}-{file.changed_ns}"


def put_away(file: Dropped, where: str, pushed: "_Pushed", was_for_it: bool) -> Path:
    """Move the file to done/ or failed/, with what became of it beside; the result is written first, so that none is without."""
    folder = file.path.parent / where
    folder.mkdir(mode=0o700, exist_ok=True)
    target = free_path(folder / _short(file.path.name))
    note = [] if was_for_it else ["the same content was pushed before; nothing was sent again"]
    target.with_name(f"{target.name}.result.txt").write_text("\n".join([*note, *map(plain, pushed.lines())]) + "\n", encoding="utf-8")
    if rejected := pushed.rejected():
        shutil.copyfile(rejected, target.with_name(f"{target.name}.rejected.csv"))
    os.utime(file.path)  # dropped again, it is another file
    file.path.replace(target)
    return target


class _Pushed:
    """What is known of the runs that pushed a content, the latest first (a rerun from failure resumes the same push)."""

    def __init__(self, instance: dg.DagsterInstance, home: Path, run_ids: list[str]) -> None:
        self._instance, self._home, self._run_ids = instance, home, run_ids
        self._push_id: int | None = None
        if outbox_path(home).exists():
            with Outbox(outbox_path(home)) as outbox:
                self._push_id = next((push.push_id for push in outbox.pushes() if push.run in run_ids), None)

    def lines(self) -> list[str]:
        """What happened, in words without addresses."""
        run_id = self._run_ids[0]
        failures = self._failures(run_id)
        first = [f"run {run_id} of the Dagster UI", *(f"failed: {each.description}" for each in failures if each.description)]
        if self._push_id is None:  # which rows a push was refused for, as its plan showed the UI
            tables = [str(table.value) for each in failures if (table := each.metadata.get("rejected rows"))]
            return [*first, "nothing was sent", *(["", *tables] if tables else [])]
        with Outbox(outbox_path(self._home)) as outbox:
            result = result_of(outbox, self._push_id, spent=None, rejected_csv=self.rejected())
        return [*first, *map(without_addresses, result_lines(result))]

    def rejected(self) -> Path | None:
        """The rejected rows, when there are any."""
        path = folder_of(self._home, self._push_id) / "rejected.csv"
        return path if self._push_id is not None and path.exists() else None

    def _failures(self, run_id: str) -> list[FailureData]:
        events = [log.dagster_event for log in self._instance.all_logs(run_id, of_type=dg.DagsterEventType.STEP_FAILURE)]
        found = [event.step_failure_data.user_failure_data for event in events if event]
        return [each for each in found if each]


def _short(name: str) -> str:
    """The name with room for more behind it."""
    if len(name.encode()) <= _LONGEST_NAME:
        return name
    return name.encode()[: _LONGEST_NAME - 20].decode("utf-8", "ignore") + Path(name).suffix[:10]
