"""What an asset function is given: ways to ask one account, each returning parts that can be loaded.

Belongs here: asking, collecting and cutting into parts. Not here: who runs the functions (`reader`), pacing and retries
(`marketing_api.client`), the tables (`warehouse`).
"""

from __future__ import annotations

import datetime as dt
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from assets.days import ChosenDays, DateRange, days_to_ask
from assets.planning.plan import Line
from assets.planning.planner import Planner
from assets.series import NOT_YET, prove
from assets.session import Answered, Reuse, Session
from marketing_api import paging
from marketing_api.client import Failure, Stopped
from marketing_api.errors import AuthenticationFailed, BudgetSpent, InvalidCall, NotAvailable, Refused, Transient
from marketing_api.exchange import Response
from marketing_api.operation import Call, Operation
from marketing_api.parsing import parse_rows
from marketing_api.records.fields import Record
from warehouse.tables import Table, Window

#: A part of a fan-out is loaded after so many answers or seconds, so that a run cut short keeps its work in the tables.
PART_ANSWERS = 500
PART_SECONDS = 30.0
#: Listings of several scopes (contacts of each list) that are read at once.
_LISTINGS_AT_ONCE = 8
#: Requests of one run for what the service left out of a series; the next run goes on.
_MOST_AGAIN = 50
#: Days that lack for longer, and were asked for again in vain, are no news: they are shown, and fail no run.
_NEWS = dt.timedelta(days=28)

Scope = Mapping[str, Any]
R = TypeVar("R", bound=Record)


@dataclass(frozen=True)
class AskSettings:
    """The settings that decide what is asked; see `pipelines.settings` for what they mean."""

    history_start: dt.date
    lookback_days: int = 7
    calendar_days_ahead: int = 90
    goal_domains: tuple[int, ...] = ()


@dataclass(frozen=True)
class Part:
    """Answers that belong together: they are loaded in one transaction.

    `scope` is what the questions do not say themselves, beside the days (of a load without answers, what is gone).
    """

    request_ids: tuple[int, ...] = ()
    scope: Scope = field(default_factory=dict)
    is_complete: bool = True
    may_shrink: bool = False
    is_nothing_due: bool = False  # there was nothing to ask: what is loaded is current
    taken_away: float = 0.0  # share of its rows that we know to be gone, since we took them away: no sign of a broken listing
    due_at: dt.datetime | None = None  # when the scope should be read again; None: the next night
    service_count: int | None = None
    responses: tuple[Response, ...] | None = None  # those of request_ids, where they are few and at hand; else the archive has them
    failures: tuple[Failure, ...] = ()
    days: DateRange | None = None  # of a date-ranged read
    problem: str = ""  # why this is not complete, where that is news

    def __add__(self, other: Part) -> Part:
        """This part's scope and completeness, with the other's answers beside them."""
        return replace(
            self,
            request_ids=self.request_ids + other.request_ids,
            responses=None,
            failures=self.failures + other.failures,
        )


class Ask:
    """Asks one account on behalf of one asset."""

    def __init__(
        self,
        session: Session,
        tables: Sequence[Table],
        *,
        settings: AskSettings,
        chosen_days: ChosenDays | None = None,
        reuse: Reuse,
        on_progress: Callable[[int, int], None],
        on_line: Callable[[Line], None] = lambda line: None,
        answered: Answered | None = None,
    ) -> None:
        self.known = session.known
        self.plan: Planner = session.planner
        self.settings = settings
        self._tables = tables
        self._chosen_days = chosen_days
        self.today = session.today()
        self._client = session.client
        self._confirm_key = session.confirm_key
        self._zone = session.zone
        self._reuse = reuse
        self._refused = session.refused
        self._on_progress = on_progress
        self._on_line = on_line
        self._answered = answered
        self.operations: set[Operation] = set()

    def once(self, operation: Operation, **params: Any) -> Part:
        """One request whose answer is the whole of its scope. Raises what the client raises."""
        self.operations.add(operation)
        self._on_progress(0, 1)
        response = self._answer(operation.bind(**params))
        self._on_progress(1, 0)
        return _part([response])

    def days(self, operation: Operation, *, ahead: int = 0, **params: Any) -> Iterator[Part]:
        """A date-ranged read: the whole range at once, or year by year where the service refuses so much."""
        for _, part in self._ranges(operation, deque(self._asked_days(ahead)), params):
            yield part

    def series(self, operation: Operation, **params: Any) -> Iterator[Part]:
        """A date-ranged read of daily series; what an answer left out of them is asked for again, in a range of its own."""
        whole = self._asked_days()
        covered = [] if self._chosen_days else self.known.covered(self._tables[0], self._zone)
        lacking = {days.first for days in self.known.covered(self._tables[0], self._zone, is_complete=False)}
        known = self.known.listed(self._tables, whole[0]) if whole else []
        todo, more = deque(whole), _MOST_AGAIN
        for days, part in self._ranges(operation, todo, params):
            served = self._listed(part, days)
            if served is None:
                yield part
                continue
            proof = prove(days, served, known, covered, self.today)
            known = [others | here for others, here in zip(known, served, strict=True)]
            if proof.days:
                yield replace(part, days=proof.days)
            for again in filter(None, (proof.before, proof.after)):
                is_known = again is proof.after and again.first in lacking
                if any(served) and more and not is_known:
                    todo.append(again)
                    more -= 1
                else:
                    yield self._lacking(part, operation, again, is_known=is_known)

    def _ranges(self, operation: Operation, todo: deque[DateRange], params: Mapping[str, Any]) -> Iterator[tuple[DateRange, Part]]:
        """Each range and its answers, or its years' where the service refuses so much. Whoever takes them may add to `todo`."""
        while todo:
            days = todo.popleft()
            try:
                yield days, self._range(operation, days, params)
            except Refused:
                if days.first.year == days.last.year:
                    raise
                todo.extendleft(reversed(list(days.years())))

    def _asked_days(self, ahead: int = 0) -> list[DateRange]:
        """The days that this run reads again, or for the first time; none of an account where those that were chosen are still to come."""
        days = days_to_ask(
            self.known.covered(self._tables[0], self._zone),
            self.today,
            history_start=self.settings.history_start,
            lookback_days=self.settings.lookback_days,
            ahead=ahead,
            chosen=self._chosen_days,
        )
        return [days] if days else []

    def _listed(self, part: Part, asked: DateRange) -> list[set[dt.date]] | None:
        """The asked days that the answer lists, by table; None when an entry cannot be read: it may be of any day."""
        listed: dict[type[Record], set[dt.date]] = {table.record: set() for table in self._tables}
        columns = {table.record: table.load.column for table in self._tables if isinstance(table.load, Window)}
        for response in part.responses or self.known.responses(part.request_ids):
            for rows in parse_rows(response, self._zone, self.today):
                if rows.rejected or rows.untold:
                    return None
                listed[rows.record] |= {day for record in rows.records if (day := getattr(record, columns[rows.record])) in asked}
        return list(listed.values())

    def _lacking(self, part: Part, operation: Operation, days: DateRange, *, is_known: bool) -> Part:
        """Days of a series that were left out and did not come in a range of their own either."""
        days = DateRange(days.first, min(days.last, self.today - NOT_YET))
        reason = "left out by the service, which lists the days around them"
        is_news = not is_known or days.first > self.today - _NEWS
        problem = f"{operation.name}, {days}: {reason}; they are asked for again" if is_news else ""
        return replace(part, days=days, scope={"reason": reason}, is_complete=False, problem=problem)

    def _range(self, operation: Operation, days: DateRange, params: Mapping[str, Any]) -> Part:
        params = {**params, "from": days.first, "to": days.last}
        part = self.pages(operation, **params) if operation.paging else self.once(operation, **params)
        return replace(part, days=days)

    def pages(self, operation: Operation, **params: Any) -> Part:
        """Every page of a listing; when a page cannot be had, the pages before it as an incomplete part."""
        self.operations.add(operation)
        listing = paging.Listing(operation, params)
        ids: list[int] = []
        failures: tuple[Failure, ...] = ()
        self._on_progress(0, 1)
        try:
            for response in listing.pages(self._answer):
                ids.append(response.request_id)
        except Transient as problem:
            if not ids:
                raise
            failures = (Failure(operation.bind(**params), problem),)
        self._on_progress(1, 0)
        is_complete = not failures and listing.is_complete
        is_short = listing.missing and not failures
        lack = f"{operation.name}: {listing.missing:,} entries that the service counts were not listed" if is_short else ""
        return Part(tuple(ids), is_complete=is_complete, service_count=listing.service_count, failures=failures, problem=lack)

    def listings(self, operation: Operation, many: Iterable[Mapping[str, Any]]) -> Iterator[Part]:
        """Paged listings of several scopes, a few at a time, each a part of its own."""

        def one(params: Mapping[str, Any]) -> Part:
            try:
                return self.pages(operation, **params)
            except (Transient, Refused) as problem:
                return Part(is_complete=False, failures=(Failure(operation.bind(**params), problem),))

        with ThreadPoolExecutor(_LISTINGS_AT_ONCE, thread_name_prefix="listing") as pool:
            yield from pool.map(one, many)

    def each(self, operation: Operation, many: Iterable[Mapping[str, Any]]) -> Iterator[Part]:
        """One request for each of `many`, in about that order, in parts of some hundred answers; of nothing, a part that says so."""
        self.operations.add(operation)
        calls, failures = self._bind_all(operation, many)
        self._on_progress(0, len(calls))
        answered: list[Response] = []
        since = time.monotonic()
        try:
            for result in self._client.fetch_many(calls, known=self._known):
                self._on_progress(1, 0)
                if isinstance(result, Failure):
                    self._note_refusal(result)
                    failures.append(result)
                else:
                    answered.append(result)
                if len(answered) >= PART_ANSWERS or time.monotonic() - since > PART_SECONDS:
                    yield _part(answered)
                    answered, since = [], time.monotonic()
        except (AuthenticationFailed, BudgetSpent, Stopped):
            yield _part(answered, failures)
            raise
        if answered or failures:
            yield _part(answered, failures)
        elif not calls:
            yield Part(is_nothing_due=True)

    def planned(self, call: str, operation: Operation, params: Callable[[Any], Mapping[str, Any]]) -> Iterator[Part]:
        """What the night's plan wants asked of contacts, and what a run that died has answers to; `params` makes a key a question."""
        line = self.plan.line(call)
        self._on_line(line)
        many = [params(key) for key in line.keys.to_pylist()]
        if self._answered is not None:
            many += self._left_behind(call, operation, params, set(line.keys.to_pylist()), self._answered)
        through = 0
        for part in self.each(operation, many):
            through += len(part.request_ids) + len(part.failures)
            # Until the last of them is there, the next night has to go on.
            is_last = through >= len(many)
            yield replace(part, is_complete=is_last and line.is_whole, due_at=line.due_at if is_last else None)

    def _left_behind(
        self, call: str, operation: Operation, params: Callable[[Any], Mapping[str, Any]], planned: set[Any], answered: Answered
    ) -> list[Mapping[str, Any]]:
        """Questions outside the plan whose archived answer is newer than what is loaded: answers must not be lost."""
        people = self.plan.people(call)
        found = []
        for key, loaded in zip(people[0].to_pylist(), people["request_id"].to_pylist(), strict=True):
            if key in planned:
                continue
            try:
                request_id = answered(operation.bind(**params(key)))
            except InvalidCall:
                continue
            if request_id is not None and request_id > (loaded or 0):
                found.append(params(key))
        return found

    def all(self, operation: Operation, many: Iterable[Mapping[str, Any]]) -> Part:
        """One request for each of `many`, all in one part: details beside the listing they belong to."""
        parts = list(self.each(operation, many))
        return sum(parts[1:], parts[0]) if parts else Part()

    def new_or_changed(self, listing: Part, record: type[R]) -> list[R]:
        """The listing's entries that are new, or differ from when their detail was last asked."""
        return self.known.new_or_changed(listing.request_ids, record, self._zone)

    @staticmethod
    def nothing_left(**scope: Any) -> Part:
        """A scope that is gone from the service: its rows are marked as deleted without asking."""
        return Part(scope={name: [value] for name, value in scope.items()}, may_shrink=True)

    def _answer(self, call: Call) -> Response:
        known = self._known(call)
        if isinstance(known, Failure):
            raise known.error
        if known is not None:
            return known
        try:
            return self._client.fetch(call)
        except (Refused, NotAvailable) as problem:
            self._note_refusal(Failure(call, problem))
            raise

    def _known(self, call: Call) -> Response | Failure | None:
        """What need not be asked: what was refused in this run, or is in the archive and unused."""
        return self._refused.get(call.key) or self._reuse(call)

    def _note_refusal(self, failure: Failure) -> None:
        """A second try of this run would be refused like the first."""
        if isinstance(failure.error, NotAvailable):
            self._confirm_key(failure.call.operation)
        if isinstance(failure.error, Refused | NotAvailable):
            self._refused[failure.call.key] = failure

    @staticmethod
    def _bind_all(operation: Operation, many: Iterable[Mapping[str, Any]]) -> tuple[list[Call], list[Failure]]:
        """Questions, and a failure for each value that the declaration does not allow (an address without @, say)."""
        calls: list[Call] = []
        bad: list[Failure] = []
        for params in many:
            try:
                calls.append(operation.bind(**params))
            except InvalidCall as problem:
                bad.append(Failure(Call(operation, {name: str(value) for name, value in params.items()}), problem))
        return calls, bad


def _part(responses: Sequence[Response], failures: Sequence[Failure] = ()) -> Part:
    is_small = all(isinstance(response.body, bytes) for response in responses)
    ids = tuple(response.request_id for response in responses)
    return Part(ids, failures=tuple(failures), responses=tuple(responses) if is_small else None)
