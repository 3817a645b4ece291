"""The state of an account's limit in Redis, where several machines share it; and what a machine does while
that Redis is gone.

A change is made here and stored by compare-and-set. With each reply comes the server's time, so that all
machines have one clock. Without the server each machine sends at `ALONE` of the limit, which its processes
share in a file. All look for it every `AGAIN` seconds, and whoever finds the state lost holds everybody until
the others have found it, too.

Not here: what the numbers mean (`pacing`), the file (`shared_state`).
"""

import functools
import logging
import math
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path

from marketing_api.errors import LimitNotShared
from marketing_api.rate_limit.pacing import Schedule
from marketing_api.rate_limit.shared_state import StateFile, T, packed, unpacked

#: Of the limit, for each machine while the server is gone. Paced evenly, up to five a window of fifteen:
#: three machines stay below it.
ALONE = 0.25
TIMEOUT = 0.5  # seconds for connecting, and for a reply
AGAIN = 2.0  # seconds between looking for a server that is gone
HOLD = AGAIN + 2 * TIMEOUT  # until all have found it, or have seen that its clock was set
_KEPT = 4 * 3600  # seconds after the last change
_TRIES, _TOO_LATE = (
    1000,
    8,
)  # of one change, while others change the state; and from when on it goes before theirs
_SWAP = Path(__file__).with_name("swap.lua").read_text(encoding="utf-8")

log = logging.getLogger(__name__)


class ServerClock:
    """By how much the server's clock is ahead of our steady one: each reply bounds it from both sides, as the
    server read its clock between sending and receipt. The bounds move apart by what two clocks may drift; a
    reply outside them means that a clock was set."""

    DRIFT = 1e-3  # seconds a second, twice what a clock is slewed by
    SET = 0.01  # seconds; less is no harm to slots in the middle of windows

    def __init__(self) -> None:
        self._least, self._most, self._learnt_at = -math.inf, math.inf, 0.0
        self.times_set = 0

    def learn(self, sent: float, server: float, received: float) -> None:
        drift = self.DRIFT * (received - self._learnt_at)
        least, most = max(self._least - drift, server - received), min(self._most + drift, server - sent)
        if least > most:
            self.times_set += least - most > self.SET
            least, most = server - received, server - sent
        self._least, self._most, self._learnt_at = least, most, received

    @property
    def ahead(self) -> float:
        return (self._least + self._most) / 2


class _Server:
    """The process's one connection to a server, for the states of all accounts; whoever uses it holds
    `lock`."""

    def __init__(self, url: str) -> None:
        self._url, self.clock = url, ServerClock()
        self._is_gone, self.look_at = False, 0.0  # and on the monotonic clock, when it is worth a try
        self.open()
        os.register_at_fork(after_in_child=self.open)  # a connection and a lock of its own

    def open(self) -> None:
        import redis  # takes 0.2 s, and is there only with the extra
        from redis.backoff import NoBackoff
        from redis.retry import Retry

        self.lock, self._token, self.errors = threading.Lock(), os.urandom(8), (redis.RedisError, OSError)
        retry = Retry(
            NoBackoff(), 1, (redis.ConnectionError,)
        )  # what closes idle connections is no outage; a time-out is paid once
        client = redis.Redis.from_url(
            self._url, socket_timeout=TIMEOUT, socket_connect_timeout=TIMEOUT, retry=retry
        )
        where = client.connection_pool.connection_kwargs
        self.name = where.get("path") or f"{where.get('host', 'localhost')}:{where.get('port', 6379)}"
        self._script = client.register_script(_SWAP)

    def swap(self, key: str, old: bytes, new: bytes, *, was_late: bool = False) -> bytes | None:
        """Store `new` where `old` is; returns what is there instead, None when it was stored. Raises one of
        `errors`."""
        sent = time.monotonic()
        seconds, microseconds, *found = self._script(
            [key, f"{key}:turn"], [old, new, _KEPT, self._token, int(was_late)]
        )
        self.clock.learn(sent, int(seconds) + int(microseconds) / 1e6, time.monotonic())
        if self._is_gone and not found and old != new:  # one that takes no writes is not back
            log.warning("Redis at %s is back: machines share the rate limit again", self.name)
            self._is_gone = False
        return found[0] if found else None

    def lost(self, problem: Exception) -> None:
        if not self._is_gone:
            until = f"this machine sends at {ALONE:.0%} of the rate limit until it is back"
            log.warning(
                "Redis at %s, which shares the rate limit among machines, is gone (%s): %s",
                self.name,
                problem,
                until,
            )
        self._is_gone, self.look_at = True, time.monotonic() + AGAIN


_server = functools.cache(_Server)


class RedisState:
    """The state under the hash that `path` ends with, on the server's clock. Raises LimitNotShared if the
    server cannot be used now."""

    def __init__(self, url: str, path: Path) -> None:
        self._key, self._file = (
            f"marketing-sync:rate-limit:{path.name}",
            StateFile(path.with_suffix(".alone")),
        )
        self._learnt = Schedule()
        self._alone_since = 0.0  # on the server's clock, 0: it is there
        try:
            self._server = _server(url)
            with self._server.lock:
                self._seen = self._server.swap(self._key, b"", b"") or b""
        except ImportError:
            raise LimitNotShared(
                "MARKETING_BUDGET_URL needs a package: pip install 'marketing-sync[redis]'"
            ) from None
        except ValueError:  # whose text may quote a part of the password
            text = (
                "not an address like redis://:PASSWORD@HOST:6379/0; special characters of a password are "
                "written like %40"
            )
            raise LimitNotShared(f"MARKETING_BUDGET_URL: {text}") from None
        except Exception as problem:  # also what an option in the address brings about
            text = (
                f"the Redis at {self._server.name} cannot be used ({problem}): see that it is up, and "
                "address and password are right"
            )
            raise LimitNotShared(f"MARKETING_BUDGET_URL: {text}") from None
        self._times_set = self._server.clock.times_set

    def now(self) -> float:
        return time.monotonic() + self._server.clock.ahead

    def apply(self, change: Callable[[Schedule], T]) -> T:
        """As `StateFile.apply`; `change` may be called several times: pure but for the schedule."""
        with self._server.lock:
            try:
                if time.monotonic() >= self._server.look_at:
                    return self._apply_shared(change)
            except self._server.errors as problem:
                self._server.lost(problem)
        return self._file.apply(lambda schedule: self._apply_alone(schedule, change))

    def _apply_shared(self, change: Callable[[Schedule], T]) -> T:
        for late in range(_TRIES):
            schedule = self._present()
            result, content = change(schedule), packed(schedule)
            if not late or content != self._seen:
                found = self._server.swap(self._key, self._seen, content, was_late=late >= _TOO_LATE)
                self._seen = content if found is None else found
                if found is not None or self._times_set != self._server.clock.times_set:
                    continue
            self._learnt, self._alone_since = schedule, 0.0
            return result
        raise TimeoutError("others change the state too often")

    def _present(self) -> Schedule:
        """What is stored; where it was lost, or its clock was set, what is learnt."""
        stored, times_set = unpacked(self._seen), self._server.clock.times_set
        if self._times_set != times_set:
            self._times_set, self._learnt, stored = times_set, Schedule(self._learnt.limit), Schedule()
        if stored == Schedule() or stored.last_at < self._alone_since:  # lost, or nobody used it since
            return self._learnt.begun_anew(self.now(), HOLD)
        return stored

    def _apply_alone(self, schedule: Schedule, change: Callable[[Schedule], T]) -> T:
        if schedule.share == 1 or (
            not self._alone_since and schedule.last_at < self._learnt.last_at
        ):  # not of this outage
            schedule.become(self._learnt.begun_anew(self.now(), 1.0, ALONE))
        self._alone_since = self._alone_since or max(self.now(), self._learnt.last_at)
        result = change(schedule)
        self._learnt = schedule
        return result
