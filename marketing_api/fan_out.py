"""Many questions at once: how far ahead, in which order, and when an operation is given up. Not here: one question (`client`)."""

from __future__ import annotations

import queue
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from marketing_api.crew import Crew, Lane
from marketing_api.errors import AuthenticationFailed, BudgetSpent, MarketingApiError, NotAvailable, Stopped, Transient
from marketing_api.exchange import Response
from marketing_api.operation import Call

#: Questions of one operation that have used up all their tries, one after the other, before the rest is not asked.
FAILURES_IN_A_ROW = 5
#: Questions under way or waiting, for each worker.
AHEAD = 2

#: Asks one question until it has an answer or a reason, unless the second value says that its caller has gone, or the third
#: that its operation has been given up meanwhile.
Persist = Callable[[Call, threading.Event, Callable[[], bool]], Response]
#: What is known of a question before it is asked.
Known = Callable[[Call], "Response | Failure | None"]


@dataclass(frozen=True, slots=True)
class Failure:
    """A question without an answer, and why."""

    call: Call
    error: MarketingApiError


class Operations:
    """Which operations still answer. Thread-safe."""

    def __init__(self) -> None:
        self._given_up: dict[str, MarketingApiError] = {}
        self._failures: Counter[str] = Counter()
        self._lock = threading.Lock()

    def given_up(self, call: Call) -> MarketingApiError | None:
        return self._given_up.get(call.operation.name)

    def note(self, result: Response | Failure) -> None:
        name = result.call.operation.name
        error = result.error if isinstance(result, Failure) else None
        with self._lock:
            self._failures[name] = self._failures[name] + 1 if isinstance(error, Transient) else 0
            if error is not None and (isinstance(error, NotAvailable) or self._failures[name] >= FAILURES_IN_A_ROW):
                self._given_up.setdefault(name, error)


class FanOut:
    """One call of `fetch_many`: its lane in the crew, and what it has learnt about the operations it asks."""

    def __init__(self, persist: Persist, crew: Crew) -> None:
        self._persist = persist
        self._crew = crew
        self._lane = Lane()
        self._operations = Operations()
        self._under_way = 0
        self._results: queue.SimpleQueue[Response | Failure | BaseException] = queue.SimpleQueue()

    def responses(self, calls: Iterable[Call], known: Known | None) -> Iterator[Response | Failure]:
        """See `Client.fetch_many`."""
        try:
            for call in calls:
                if (result := self._known(call, known)) is not None:
                    yield result
                    continue
                self._crew.put(self._lane, lambda call=call: self._results.put(self._result(call)))  # type: ignore[misc]
                self._under_way += 1
                while self._under_way >= AHEAD * self._crew.size or not self._results.empty():
                    yield self._next()
            while self._under_way:
                yield self._next()
        except BudgetSpent:
            yield from self._last()
            raise
        finally:
            self._lane.stop.set()
            self._crew.drop(self._lane)

    def _last(self) -> Iterator[Response | Failure]:
        """What was paid for before the budget ran out."""
        self._under_way -= self._crew.drop(self._lane)
        while self._under_way:
            try:
                yield self._next()
            except BudgetSpent:
                continue

    def _known(self, call: Call, known: Known | None) -> Response | Failure | None:
        """What can be said without asking."""
        if (result := known(call) if known is not None else None) is not None:
            return result
        error = self._operations.given_up(call)
        return None if error is None else Failure(call, error)

    def _result(self, call: Call) -> Response | Failure | BaseException:
        """In a worker. What ends the whole call is returned bare, to be raised in the caller's thread."""
        if (error := self._operations.given_up(call)) is not None:
            return Failure(call, error)
        result: Response | Failure
        try:
            result = self._persist(call, self._lane.stop, lambda: self._operations.given_up(call) is not None)
        except (AuthenticationFailed, BudgetSpent, Stopped) as end:
            return end
        except MarketingApiError as problem:
            hopeless = self._operations.given_up(call) if isinstance(problem, Transient) else None
            result = Failure(call, hopeless or problem)
        except BaseException as fault:  # a full disk, a mistake of ours: not the question's fault
            return fault
        self._operations.note(result)
        return result

    def _next(self) -> Response | Failure:
        result = self._results.get()
        self._under_way -= 1
        if isinstance(result, BaseException):
            raise result
        return result
