"""Files that people drop into a folder (MARKETING_DROP_FOLDER) to be pushed, each once: into `contacts`,
`tags`, `activities` or `moves` of it, which are in a folder for each account where there are several.

A file is moved to `working` before it is read, so that it is taken once, and then to `done` or `failed`, its
result beside it. What a kill leaves in `working` is pushed again: the outbox knows what of it was sent. Not
here: who looks into the folder, and when (`push_jobs`, `sensors`, `push_terminal`)."""

import datetime as dt
import re
import shutil
import stat
from collections.abc import Iterator
from contextlib import ExitStack, nullcontext, suppress
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path

from home.alerts import try_to_post
from home.exits import Incomplete
from home.failures import Unexpected, unexpected_logged
from home.settings import SANDBOX_ACCOUNT, Settings, SettingsError
from marketing_api.clock import wall
from marketing_api.redaction import plain, without_addresses
from write_back.account_state import load_known
from write_back.input.rows import InputError
from write_back.kinds import KINDS, Kind
from write_back.order import Order, Ran
from write_back.outbox.outbox import open_outbox
from write_back.outbox.store import OutboxBusy, sender_lock
from write_back.push_report import headline, plan_lines, result_lines
from write_back.push_service import Watch, enqueue, finish_push, plan_push

JOB = "push_folder"
_WORKING = "working"
#: Hidden, or as programs call what they have not written to the end; and what systems put everywhere.
_NOT_MEANT = re.compile(
    r"[.~].*|.*\.(?:part|partial|filepart|crdownload|tmp|swp)|thumbs\.db|desktop\.ini", re.I | re.S
)
#: In front of a name, once it was taken.
_TIME = re.compile(r"\A\d{8}-\d{6}-\d{6}-")
#: Letters of a name that are kept, its end: more is put around it, and a file system takes 255 bytes.
_KEPT = 50


@dataclass
class Dropped:
    """A file, and what became of it. `changed_at`: unix seconds, a move counts, too; `lines` are for whoever
    may read the file; `problem`, without addresses, is empty when all was done."""

    path: Path
    kind: Kind
    account: str
    changed_at: float
    lines: list[str] = field(default_factory=list)
    problem: str = ""

    @property
    def is_begun(self) -> bool:
        return self.path.parent.name == _WORKING


def dropped(settings: Settings, *, is_still: bool = True) -> list[Dropped]:
    """What was begun, and then, oldest first, what has not changed for MARKETING_DROP_SECONDS; or what has.
    Raises SettingsError when the folder cannot be used."""
    if settings.drop_folder is None:
        raise SettingsError("MARKETING_DROP_FOLDER is not set: set it to the folder that files are put into")
    root = settings.folder / settings.drop_folder.expanduser()
    try:
        found = [each for place in _folders(settings, root) for each in _files(*place)]
    except OSError as problem:
        raise SettingsError(
            f"MARKETING_DROP_FOLDER: {problem.filename} cannot be used ({problem.strerror}): see that {root} "
            "is there, and that this user may write into it and the folders in it"
        ) from None
    found.sort(key=lambda each: (not each.is_begun, each.changed_at))
    still_since = wall() - settings.drop_seconds
    return [each for each in found if (each.is_begun or each.changed_at <= still_since) == is_still]


def _folders(settings: Settings, root: Path) -> Iterator[tuple[Path, Kind, str]]:
    names = [connection.account for connection in settings.accounts] or [SANDBOX_ACCOUNT]
    for name in names:
        own = _made(root / name) if settings.shard or len(names) > 1 else root
        for kind in KINDS.values():
            if not kind.agreement:  # that takes a person
                yield _made(own / kind), kind, name


def _made(folder: Path) -> Path:
    """Who may use the folder that it is in may use it, too. A link, which may lead anywhere, is none."""
    is_new = not folder.exists()
    folder.mkdir(exist_ok=not folder.is_symlink())
    if is_new:
        shutil.copymode(folder.parent, folder)
    return folder


def _files(folder: Path, kind: Kind, account: str) -> Iterator[Dropped]:
    for path in chain(folder.iterdir(), (folder / _WORKING).glob("*")):
        with suppress(FileNotFoundError):  # taken away meanwhile
            about = path.lstat()
            if stat.S_ISREG(about.st_mode) and not _NOT_MEANT.fullmatch(path.name):
                yield Dropped(path, kind, account, about.st_ctime)


def push_files(settings: Settings, watch: Watch = nullcontext) -> Iterator[Dropped]:
    """Push what waits now, one file after another; nothing while another process does. What is wrong with a
    file is its problem; whatever else is wrong is raised, and leaves the files to the next time."""
    with ExitStack() as stack:
        try:
            stack.enter_context(sender_lock(settings.home, ".folder"))
        except OutboxBusy:
            return
        for each in dropped(settings):
            load_known(settings, each.account)  # what was never read is no fault of a file
            if _is_taken(each):
                _push(settings, each, watch)
                _put_away(each)
                yield each


def _is_taken(each: Dropped) -> bool:
    """Into `working`, under a name that is used once and can be shown; not when somebody took it away."""
    if not each.is_begun:
        since = dt.datetime.fromtimestamp(each.changed_at, dt.UTC)
        name = "".join(filter(str.isprintable, _TIME.sub("", each.path.name)))[-_KEPT:]
        working = _made(each.path.parent / _WORKING)
        try:
            each.path = each.path.rename(working / f"{since:%Y%m%d-%H%M%S-%f}-{name}")
        except FileNotFoundError:
            return False
    return stat.S_ISREG(each.path.lstat().st_mode)  # nothing took its place meanwhile


def _push(settings: Settings, each: Dropped, watch: Watch) -> None:
    ran = Ran(JOB, each.account)
    try:
        with unexpected_logged(), open_outbox(settings.home) as outbox:
            planned = plan_push(settings, Order(each.kind, each.account, each.path))
            each.lines += plan_lines(planned, is_discreet=True)
            ran.push_id = enqueue(settings, planned, run=ran.run)
            results = finish_push(settings, outbox, ran, watch)
    except (InputError, Unexpected) as problem:
        each.lines += ["", str(problem)]
        each.problem = without_addresses(str(problem))
        if settings.alert_url:
            text = f"marketing-sync: {without_addresses(each.path.name)} was not pushed: {each.problem}"
            try_to_post(settings, {"text": text, "job": JOB, "account": each.account, "kind": each.kind})
        return
    if ran.stopped:
        raise Incomplete(f"sending stopped: {ran.stopped}; the next run goes on with what is in {_WORKING}")
    for result in results:
        each.lines += ["", *result_lines(result, is_discreet=True)]
        if result.shortfall and result.source == each.path.name:  # also of a run that was killed
            each.problem = headline(result)


def _put_away(each: Dropped) -> None:
    """The result is written first, so that no file is without."""
    target = _made(each.path.parents[1] / ("failed" if each.problem else "done")) / each.path.name
    result = target.with_name(f"{target.name}.result.txt")
    result.write_text("\n".join(map(plain, each.lines)) + "\n", encoding="utf-8")
    shutil.copymode(each.path, result)
    each.path = each.path.rename(target)
