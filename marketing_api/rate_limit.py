"""The client-side rate limiter: the requests of an account, over all threads and processes, under
its limit: of one machine (a locked file), or of all machines that share a Redis
(`MARKETING_BUDGET_URL`).

`RateLimiter.wait_for_slot` gives each request its slot, and `learn` receives what the service
reports. After a 429 all requests wait for the window to reset, and the refused request goes first.
A process holds at most one slot that is not yet due. So processes share about equally, however many
threads they have. Measurements are in `docs/decisions/reading.md`.

Belongs here: waiting, in order and interruptibly; how many requests a run may send; where the state
is kept; reading what the service says about its limit. Not here: which moments are slots
(`pacing`). Needs `fcntl`, so Linux or macOS."""

import bisect
import contextlib
import datetime as dt
import fcntl
import functools
import hashlib
import itertools
import logging
import math
import os
import re
import stat
import tempfile
import threading
import time
import zlib
from collections.abc import Callable, Iterator, Mapping
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any, Protocol, Self, TypeVar

import msgspec

from marketing_api.clock import Clock, unix_now, utc_now
from marketing_api.envelope import Envelope, decode
from marketing_api.errors import BudgetSpent, LimitNotShared, Stopped
from marketing_api.exchange import Connection
from marketing_api.pacing import RateReport, Schedule, Slot
from marketing_api.records.values import read_bool, read_decimal, read_int, read_or_none
from marketing_api.redaction import Secret

log = logging.getLogger(__name__)

T = TypeVar("T")


class Store(Protocol):
    """Where the `Schedule` of one account is kept, used by one thread at a time."""

    def now(self) -> float:
        """Seconds on the schedule's clock, which is the same for all processes that share it."""

    def apply(self, change: Callable[[Schedule], T]) -> T:
        """Change the schedule while no other process does, and return what `change` returns.
        `change` may be called several times, so it must change nothing but the schedule."""


class RateLimiter:
    """The limit of one account as this process sees it. Thread-safe.

    `cap`: a number of requests per second that is never exceeded, even if the service allows more.
    Times of slots are of the store's clock."""

    def __init__(self, store: Store | Path, *, cap: float | None = None) -> None:
        self._store = FileStore(store) if isinstance(store, Path) else store
        self._cap = cap
        self._lock = threading.Lock()
        #: Waiting requests: refused ones first, then in order of arrival. Each has its own
        #: condition; with a shared one, all would wake for every slot.
        self._queue: list[tuple[bool, int, threading.Condition]] = []
        self._arrivals = itertools.count()
        self._slot: Slot | None = None  # reserved for this process, not yet due

    @classmethod
    def share_limit(cls, connection: Connection) -> Self:
        """The limiter that all processes share for the account: those of this machine, or of all
        that name the same Redis.

        Raises LimitNotShared when that Redis cannot be used.
        """
        path = shared_path(connection.url, connection.key)
        store: Store | Path = path
        if connection.budget_url:
            store = RedisStore(connection.budget_url.reveal(), path)
        return cls(store, cap=connection.max_rate)

    def wait_for_slot(
        self, *, first: bool = False, is_cancelled: Callable[[], bool] = lambda: False
    ) -> Slot:
        """Block until a request may leave, and return its slot for `learn`. `first`: it was refused
        and goes before all others.

        Raises Stopped as soon as `is_cancelled` returns True (call `wake_waiting` when that
        changes).
        """
        with self._lock:
            turn = threading.Condition(self._lock)
            place = not first, next(self._arrivals), turn
            bisect.insort(self._queue, place)
            try:
                while not is_cancelled():
                    if self._queue[0] != place:
                        turn.wait()
                        continue
                    slot = self._slot = self._store.apply(self._reserve_slot)
                    left = slot.at - self._store.now()
                    if left <= 0:
                        self._slot = None
                        return slot
                    turn.wait(left)
                raise Stopped("stopped while waiting for the rate limit")
            finally:
                self._queue.remove(place)
                if self._queue:
                    self._queue[0][-1].notify()

    def _reserve_slot(self, schedule: Schedule) -> Slot:
        return schedule.reserve_slot(self._store.now(), self._cap, reserved=self._slot)

    def learn(self, slot: Slot, report: RateReport, *, refused: bool) -> None:
        """Learn what the response to the request of `slot` says about the limit. After a refusal
        all requests wait."""

        def change(schedule: Schedule) -> None:
            now = self._store.now()
            schedule.learn(slot, report, refused=refused, now=now, wall=unix_now())

        with self._lock:
            self._store.apply(change)

    def wake_waiting(self) -> None:
        """Make every waiting request check again whether it is cancelled."""
        with self._lock:
            for *_, turn in self._queue:
                turn.notify()

    @property
    def limit(self) -> float:
        """Requests per second that the account reports; before that, the cautious start."""
        with self._lock:
            return self._store.apply(lambda schedule: schedule.reported)

    @property
    def rate(self) -> float:
        """Requests per second at which slots are given now."""
        with self._lock:
            return self._store.apply(lambda schedule: schedule.rate(self._cap))


class RequestBudget:
    """A number of requests (None: any) and a moment (None: no end) shared by all clients of a run.
    Thread-safe."""

    def __init__(
        self,
        max_requests: int | None = None,
        *,
        until: dt.datetime | None = None,
        now: Clock = utc_now,
    ) -> None:
        self.max_requests = max_requests
        self.until = until
        self._now = now
        self.left = max_requests  # that may still be sent, as far as their number is limited
        self._lock = threading.Lock()

    def take_request(self) -> None:
        """Raises BudgetSpent if no request is left, or if the run must end now."""
        if self.until is not None and self._now() >= self.until:
            raise BudgetSpent(f"it is {self.until:%H:%M} UTC, the time limit of the run")
        with self._lock:
            if self.left is None:
                return
            if self.left <= 0:
                raise BudgetSpent(f"the run's {self.max_requests} requests are used up")
            self.left -= 1

    def give_back(self) -> None:
        with self._lock:
            if self.left is not None:
                self.left += 1


# ---- shared by the processes of one machine: a small locked file

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Schedule).decode
# bytes of the file, including the checksum; always the same, so that a kill between writing and
# cutting cannot damage it
_SIZE = 1024


class FileStore:
    """Changes are made under the file's lock. The clock is one that all processes of the machine
    have."""

    now = staticmethod(time.monotonic)

    def __init__(self, path: Path) -> None:
        self._path = path

    def apply(self, change: Callable[[Schedule], T]) -> T:
        with self._open_locked() as descriptor:
            stored = os.pread(descriptor, _SIZE + 1, 0)
            schedule = unpack_schedule(stored)
            result = change(schedule)
            os.pwrite(descriptor, pack_schedule(schedule), 0)
            if len(stored) > _SIZE:
                os.ftruncate(descriptor, _SIZE)
            return result

    @contextlib.contextmanager
    def _open_locked(self) -> Iterator[int]:
        """The file is opened for each change: a forked child would share an open descriptor
        together with its lock."""
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        while True:
            descriptor = os.open(self._path, flags, 0o600)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX)
                # A removed file has no links; others may already use a new one.
                if os.fstat(descriptor).st_nlink:
                    yield descriptor
                    return
            finally:
                fcntl.flock(descriptor, fcntl.LOCK_UN)  # also for a child that was forked meanwhile
                os.close(descriptor)


def pack_schedule(schedule: Schedule) -> bytes:
    content = _encode(schedule).ljust(_SIZE - 4)
    return zlib.crc32(content).to_bytes(4) + content


def unpack_schedule(stored: bytes) -> Schedule:
    """The stored schedule. If it is empty, cut, damaged or of another version, an empty one: the
    limit is then learned again, which takes seconds."""
    content = stored[4:]
    if zlib.crc32(content).to_bytes(4) != stored[:4]:
        return Schedule()
    try:
        return _decode(content)
    except msgspec.MsgspecError:
        return Schedule()


def shared_path(url: str, key: Secret | str) -> Path:
    """The file of an account's limit, in a folder of the temp directory that only its owner can
    open.

    Processes share a limit when they run as the same user with the same temp directory. The name is
    a hash of both values."""
    secret = key.reveal() if isinstance(key, Secret) else key
    name = hashlib.blake2b(f"{url}\0{secret}".encode(), digest_size=16).hexdigest()
    return private_folder() / name


def private_folder() -> Path:
    """A folder of the temp directory that only its owner can open, for what the processes of one
    user share. It is created if necessary, and its content is expendable.

    Raises PermissionError if another user owns a folder of that name, and LimitNotShared if there
    is no temp directory."""
    try:
        temporary = Path(tempfile.gettempdir())
    except FileNotFoundError:
        raise LimitNotShared(
            "programs share the rate limit in a temporary directory, but none can be written: set "
            "TMPDIR to a folder of yours"
        ) from None
    folder = temporary / f"marketing-sync-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid():
        raise PermissionError(f"{folder} belongs to somebody else; remove it, or set TMPDIR")
    if found.st_mode & 0o077:
        folder.chmod(0o700)
    return folder


# ---- shared by several machines: a Redis, and what a machine does while it is gone. A change is
# made here, and stored by compare-and-set. Each reply has the server's time, so that all machines
# use one clock. Without the server each machine sends at `ALONE` of the limit, which its processes
# share in a file. All look for the server every `LOOK_INTERVAL_S` seconds. The machine that finds
# the state lost makes all others wait until they have noticed that, too.

#: The share of the limit that each machine uses while the server is gone. With even pacing that is
#: up to five requests in a window of fifteen, so three machines stay below the limit.
ALONE = 0.25
TIMEOUT = 0.5  # seconds for connecting, and for a reply
LOOK_INTERVAL_S = 2.0  # seconds between looking for a server that is gone
HOLD = LOOK_INTERVAL_S + 2 * TIMEOUT  # until all have found it, or have seen that its clock was set
_KEPT = 4 * 3600  # seconds after the last change
#: Tries of one change while others change the state, and the try that goes before theirs.
_TRIES = 1000
_TOO_LATE = 8
_SWAP = Path(__file__).with_suffix(".lua").read_text(encoding="utf-8")


class ServerClock:
    """By how much the server's clock is ahead of our steady one. Each reply bounds it from both
    sides, since the server read its clock between sending and receipt. The bounds move apart by the
    drift that two clocks may have; a reply outside them means that a clock was set."""

    DRIFT = 1e-3  # seconds a second, twice what a clock is slewed by
    SET = 0.01  # seconds; less is no harm to slots in the middle of windows

    def __init__(self) -> None:
        self._least = -math.inf
        self._most = math.inf
        self._learnt_at = 0.0
        self.times_set = 0

    def learn(self, sent: float, server: float, received: float) -> None:
        drift = self.DRIFT * (received - self._learnt_at)
        least = max(self._least - drift, server - received)
        most = min(self._most + drift, server - sent)
        if least > most:
            self.times_set += least - most > self.SET
            least = server - received
            most = server - sent
        self._least = least
        self._most = most
        self._learnt_at = received

    @property
    def ahead(self) -> float:
        return (self._least + self._most) / 2


class _Server:
    """The process's one connection to a server, for the states of all accounts; callers hold
    `lock`."""

    def __init__(self, url: str) -> None:
        self._url = url
        self.clock = ServerClock()
        self._is_gone = False
        self.look_at = 0.0  # monotonic clock: when the server is tried again
        self.open()
        os.register_at_fork(after_in_child=self.open)  # a child has its own connection and lock

    def open(self) -> None:
        import redis  # takes 0.2 s, and is there only with the extra
        from redis.backoff import NoBackoff
        from redis.retry import Retry

        self.lock = threading.Lock()
        self._token = os.urandom(8)
        self.errors = (redis.RedisError, OSError)
        # A closed idle connection is not an outage, so it is retried. A time-out is not retried.
        retry = Retry(NoBackoff(), 1, (redis.ConnectionError,))
        client = redis.Redis.from_url(
            self._url, socket_timeout=TIMEOUT, socket_connect_timeout=TIMEOUT, retry=retry
        )
        options = client.connection_pool.connection_kwargs
        address = f"{options.get('host', 'localhost')}:{options.get('port', 6379)}"
        self.name = options.get("path") or address
        self._script = client.register_script(_SWAP)

    def swap_state(
        self, key: str, old: bytes, new: bytes, *, was_late: bool = False
    ) -> bytes | None:
        """Store `new` if `old` is stored now, and return None; otherwise return what is stored.
        Raises one of `errors`."""
        sent = time.monotonic()
        keys = [key, f"{key}:turn"]
        seconds, microseconds, *found = self._script(
            keys, [old, new, _KEPT, self._token, int(was_late)]
        )
        server_time = int(seconds) + int(microseconds) / 1e6
        self.clock.learn(sent, server_time, time.monotonic())
        if self._is_gone and not found and old != new:  # a server that takes no writes is not back
            log.warning("Redis at %s is back: machines share the rate limit again", self.name)
            self._is_gone = False
        present: bytes | None = None
        if found:
            present = found[0]
        return present

    def note_loss(self, error: Exception) -> None:
        if not self._is_gone:
            until = f"this machine sends at {ALONE:.0%} of the rate limit until it is back"
            log.warning(
                "Redis at %s, which shares the rate limit among machines, is gone (%s): %s",
                self.name,
                error,
                until,
            )
        self._is_gone = True
        self.look_at = time.monotonic() + LOOK_INTERVAL_S


_server = functools.cache(_Server)


class RedisStore:
    """The state under the hash that `path` ends with, on the server's clock. Raises LimitNotShared
    if the server cannot be used now."""

    def __init__(self, url: str, path: Path) -> None:
        self._key = f"marketing-sync:rate-limit:{path.name}"
        self._file = FileStore(path.with_suffix(".alone"))
        self._learnt = Schedule()
        self._alone_since = 0.0  # on the server's clock; 0 while the server responds
        try:
            self._server = _server(url)
            with self._server.lock:
                self._seen = self._server.swap_state(self._key, b"", b"") or b""
        except ImportError:
            raise LimitNotShared(
                "MARKETING_BUDGET_URL needs a package: pip install 'marketing-sync[redis]'"
            ) from None
        except ValueError:  # its text may quote a part of the password
            text = (
                "not an address like redis://:PASSWORD@HOST:6379/0; special characters of a "
                "password are written like %40"
            )
            raise LimitNotShared(f"MARKETING_BUDGET_URL: {text}") from None
        except Exception as error:  # an option in the address may cause any error
            text = (
                f"the Redis at {self._server.name} cannot be used ({error}): check that it is "
                "running, and its address and password"
            )
            raise LimitNotShared(f"MARKETING_BUDGET_URL: {text}") from None
        self._times_set = self._server.clock.times_set

    def now(self) -> float:
        return time.monotonic() + self._server.clock.ahead

    def apply(self, change: Callable[[Schedule], T]) -> T:
        with self._server.lock:
            try:
                if time.monotonic() >= self._server.look_at:
                    return self._apply_shared(change)
            except self._server.errors as error:
                self._server.note_loss(error)
        return self._file.apply(lambda schedule: self._apply_alone(schedule, change))

    def _apply_shared(self, change: Callable[[Schedule], T]) -> T:
        for late in range(_TRIES):
            schedule = self._read_state()
            result = change(schedule)
            content = pack_schedule(schedule)
            if not late or content != self._seen:
                found = self._server.swap_state(
                    self._key, self._seen, content, was_late=late >= _TOO_LATE
                )
                self._seen = content if found is None else found
                if found is not None or self._times_set != self._server.clock.times_set:
                    continue
            self._learnt = schedule
            self._alone_since = 0.0
            return result
        raise TimeoutError("others change the state too often")

    def _read_state(self) -> Schedule:
        """The stored state; if it was lost, or its clock was set, what this process knows."""
        stored = unpack_schedule(self._seen)
        times_set = self._server.clock.times_set
        if self._times_set != times_set:
            self._times_set = times_set
            self._learnt = Schedule(self._learnt.limit)
            stored = Schedule()
        is_unused = stored.last_at < self._alone_since
        if stored == Schedule() or is_unused:
            return self._learnt.restart(self.now(), HOLD)
        return stored

    def _apply_alone(self, schedule: Schedule, change: Callable[[Schedule], T]) -> T:
        is_of_earlier_outage = not self._alone_since and schedule.last_at < self._learnt.last_at
        if schedule.share == 1 or is_of_earlier_outage:
            schedule.replace_by(self._learnt.restart(self.now(), 1.0, ALONE))
        if not self._alone_since:
            self._alone_since = max(self.now(), self._learnt.last_at)
        result = change(schedule)
        self._learnt = schedule
        return result


# ---- what the service says about its limit

_HEADER = re.compile(r"x-rate-?limit-(\w+)")


def read_rate_report(envelope: Envelope | None, headers: Mapping[str, str]) -> RateReport:
    """The report in the body, at any level, completed by the headers (observation 27)."""
    values = _read_limit_headers(headers) | _read_limit_object(envelope)
    known: dict[str, Any] = {}
    for name, read in _READERS.items():
        known[name] = read_or_none(read, values.get(name))
    reached = read_or_none(read_bool, values.get("reached"))
    return RateReport(**known, reached=bool(reached))


def _read_limit_headers(headers: Mapping[str, str]) -> dict[str, Any]:
    """The raw values of the headers, by names in lower case."""
    values: dict[str, Any] = {}
    for name, value in headers.items():
        folded = name.lower()
        match = _HEADER.fullmatch(folded)
        if match:
            values[match[1]] = value
        elif folded == "retry-after":
            values.setdefault("after", _seconds_until(value, headers))
    return values


def _read_seconds(value: Any) -> float:
    return float(read_decimal(value))


_READERS: dict[str, Callable[[Any], float]] = {
    "limit": read_int,
    "requests": read_int,
    "remaining": read_int,
    "reset": _read_seconds,
    "after": _read_seconds,
}


def _seconds_until(moment: str, headers: Mapping[str, str]) -> Any:
    """`Retry-After` may be a date; then these are the seconds after the response's own date, which
    is of the same clock. Anything else is returned unchanged."""
    folded = {name.lower(): value for name, value in headers.items()}
    try:
        now = parsedate_to_datetime(folded.get("date", ""))
        return (parsedate_to_datetime(moment) - now).total_seconds()
    except (ValueError, TypeError, OverflowError):
        return moment


def _read_limit_object(envelope: Envelope | None) -> dict[str, Any]:
    """The same from the body: the top level first, where it was observed; `data` last, since it may
    be huge."""
    if envelope is None:
        return {}
    for level in envelope.levels.values():
        for name, raw in level.items():
            if name.lower().replace("_", "-") not in ("rate-limit", "ratelimit"):
                continue
            found = read_or_none(decode, raw)
            if isinstance(found, dict):
                return {key.lower(): value for key, value in found.items() if value is not None}
    return {}
