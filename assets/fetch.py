"""The object that an asset function receives: ways to fetch from one account.

    method                   what it requests                               returns
    fetch_one                one request, which is the whole listing        a batch
    fetch_pages              every page of a listing, or of several views   a batch
    fetch_listings           paged listings, one for each set of parameters a batch for each
    fetch_days               the due range of days                          a batch for each range
    fetch_series             the same for daily series, plus cut days       a batch for each range
    fetch_many               one request for each set of parameters         batches of 500 responses
    fetch_all                the same                                       a batch
    fetch_planned            the contacts of the crawl plan                 batches of 500 responses
    with_details             details of entries that are new or changed     a batch

A batch is loaded in one transaction. Not here: the functions (`sources`), who runs them (`reader`),
the rate limit and retries (`marketing_api.client`)."""

import datetime as dt
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from operator import attrgetter
from typing import Any

from assets.account_session import AccountSession, make_other_business_error
from assets.days import NOT_YET, ChosenDays, DateRange, days_to_fetch, prove_days
from assets.result import AccountResult, Batch
from marketing_api import paging
from marketing_api.client import Failure, Stopped
from marketing_api.errors import (
    AuthenticationFailed,
    BudgetSpent,
    InvalidCall,
    MarketingApiError,
    NotAvailable,
    Refused,
    Transient,
)
from marketing_api.exchange import Response
from marketing_api.operation import Call, Operation
from marketing_api.parsing import parse_rows
from marketing_api.records.fields import Record
from warehouse.bookkeeping import load_requests
from warehouse.loads.listing import needs_detail
from warehouse.tables import Table, Window

#: A batch of many requests is loaded after this many responses or seconds, so that a run that is
#: cut short keeps its work in the tables.
BATCH_RESPONSES = 500
BATCH_SECONDS = 30.0
#: Requests of one run for days that the service left out of a series; the next run continues.
_MAX_RETRIED_RANGES = 50
#: Missing days that are older, and were requested again in vain, are displayed but fail no run.
_NEWS = dt.timedelta(days=28)
#: How far before the requested days we look to see whether a daily series lists every day.
_SERIES_BEFORE = dt.timedelta(days=28)

#: Why nothing of a listing of several pages is marked as deleted.
_UNCONFIRMED = (
    "rows are missing from a listing of several pages, and the second reading, which would confirm "
    "it, was incomplete: nothing was marked as deleted"
)

#: What the function of an asset yields.
Batches = Iterator[Batch]
#: Turns a key of the crawl plan, or an entry of a listing, into the parameters of a request.
Params = Callable[[Any], Mapping[str, Any]]


def refuse_paged(operation: Operation) -> None:
    """Raises InvalidCall if the operation has pages: one request would only read the first."""
    if operation.is_paged:
        raise InvalidCall(
            f"{operation.name} has pages: declare an asset that reads them with `fetch.fetch_pages`"
        )


@dataclass(frozen=True)
class FetchSettings:
    """The settings that decide what is fetched; see `home.settings` for what they mean."""

    history_start: dt.date
    lookback_days: int
    goal_domains: tuple[int, ...] = ()


@dataclass(eq=False)
class Fetcher:
    """Fetches from one account for the asset of this name, counting in `result`. The fetcher with
    the highest `urgency` goes first."""

    session: AccountSession
    name: str
    tables: Sequence[Table]
    result: AccountResult
    settings: FetchSettings
    chosen_days: ChosenDays | None = None
    urgency: int = 0
    operations: set[Operation] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.account = self.session.account
        self.warehouse = self.session.warehouse
        self.plan = self.session.planner
        self.today = self.session.today()
        #: A listing has a known row, so it is of the same account.
        self.is_recognised = self.session.accepts_shrinking

    def fetch_one(self, operation: Operation, **params: Any) -> Batch:
        """One request whose response is the whole of its scope. Raises what the client raises, and
        InvalidCall for an operation with pages."""
        refuse_paged(operation)
        self.operations.add(operation)
        self.result.planned += 1
        response = self._fetch_call(operation.bind(**params))
        self.result.fetched += 1
        return Batch.from_responses([response])

    def fetch_days(self, operation: Operation, *, ahead: int = 0, **params: Any) -> Batches:
        """A date-ranged read: the whole range in one request, or year by year if the service
        refuses that."""
        todo = deque(self._list_due_ranges(ahead))
        for _, batch in self._fetch_ranges(operation, todo, params):
            yield batch

    def fetch_series(self, operation: Operation, **params: Any) -> Batches:
        """A date-ranged read of daily series. Days that a response left out are requested again, in
        their own range."""
        whole = self._list_due_ranges()
        covered = []
        if not self.chosen_days:
            covered = self._covered_ranges()
        incomplete = self._covered_ranges(is_complete=False)
        lacking = {days.first for days in incomplete}
        known = self._days_listed(whole)
        todo = deque(whole)
        more = _MAX_RETRIED_RANGES
        for days, batch in self._fetch_ranges(operation, todo, params):
            served = self._list_days(batch, days)
            if served is None:
                yield batch
                continue
            proof = prove_days(days, served, known, covered, self.today)
            for listed_before, listed_here in zip(known, served, strict=True):
                listed_before |= listed_here
            if proof.days:
                yield replace(batch, days=proof.days)
            has_days = any(served)
            for days_left_out in filter(None, (proof.before, proof.after)):
                is_known = days_left_out is proof.after and days_left_out.first in lacking
                if more and has_days and not is_known:
                    todo.append(days_left_out)
                    more -= 1
                else:
                    yield self._note_lacking(batch, operation, days_left_out, is_known=is_known)

    def _days_listed(self, ranges: Iterable[DateRange]) -> list[set[dt.date]]:
        """For each range and table, the days with rows in the range and shortly before it."""
        found = []
        for days in ranges:
            first = days.first - _SERIES_BEFORE
            for table in self.tables:
                listed = self.warehouse.listed_days(table, self.account, first, days.last)
                found.append(set(listed))
        return found

    def _fetch_ranges(
        self, operation: Operation, todo: deque[DateRange], params: Mapping[str, Any]
    ) -> Iterator[tuple[DateRange, Batch]]:
        """Each range with its responses; if the service refuses a range, its years. The caller may
        add ranges to `todo` meanwhile."""
        fetch = self.fetch_pages if operation.is_paged else self.fetch_one
        while todo:
            days = todo.popleft()
            range_params = {**params, "from": days.first, "to": days.last}
            try:
                batch = fetch(operation, **range_params)
            except Refused:
                if days.first.year == days.last.year:
                    raise
                years = list(days.split_years())
                todo.extendleft(reversed(years))
            else:
                yield days, replace(batch, days=days)

    def _list_due_ranges(self, ahead: int = 0) -> list[DateRange]:
        """The days that this run reads, as one range. Empty if the chosen days are in the future
        for this account."""
        days = days_to_fetch(
            self._covered_ranges(),
            self.today,
            history_start=self.settings.history_start,
            lookback_days=self.settings.lookback_days,
            ahead=ahead,
            chosen=self.chosen_days,
        )
        if days:
            return [days]
        return []

    def _covered_ranges(self, *, is_complete: bool = True) -> list[DateRange]:
        """Ranges of days that were read completely after they had ended in the account's zone, or
        ranges that were not."""
        zone = str(self.session.zone)
        table = self.tables[0]
        ranges = self.warehouse.covered_days(table, self.account, zone, is_complete=is_complete)
        return [DateRange(first, last) for first, last in ranges]

    def _list_days(self, batch: Batch, requested: DateRange) -> list[set[dt.date]] | None:
        """The requested days that the response lists, by table; None if an entry cannot be read,
        since it may be of any day."""
        listed: dict[type[Record], set[dt.date]] = {}
        columns: dict[type[Record], str] = {}
        for table in self.tables:
            listed[table.record] = set()
            if isinstance(table.load, Window):
                columns[table.record] = table.load.column
        for response in self.warehouse.archive.responses(batch.request_ids):
            for rows in parse_rows(response, self.session.zone, self.today):
                if rows.rejected or rows.missing:
                    return None
                read_day = attrgetter(columns[rows.record])
                days = filter(requested.__contains__, map(read_day, rows.records))
                listed[rows.record].update(days)
        return list(listed.values())

    def _note_lacking(
        self, batch: Batch, operation: Operation, days: DateRange, *, is_known: bool
    ) -> Batch:
        """Days of a series that were left out, and did not come in their own range either."""
        last_expected = self.today - NOT_YET
        days = DateRange(days.first, min(days.last, last_expected))
        reason = "left out by the service, which lists the days around them"
        is_news = not is_known or days.first > self.today - _NEWS
        shortfall = ""
        if is_news:
            shortfall = f"{operation.name}, {days}: {reason}; they are requested again"
        return replace(
            batch, days=days, scope={"reason": reason}, is_complete=False, shortfall=shortfall
        )

    def fetch_pages(self, operation: Operation, *views: Mapping[str, Any], **params: Any) -> Batch:
        """Every page of a listing; if a page does not come, the pages before it as an incomplete
        batch.

        A listing may change between two of its pages. So if a listing of several pages has lost
        rows, it is read again: a row is gone if it is in neither reading. If the second reading is
        incomplete, no row is gone.

        `views`: parameters of several listings that belong together; the first shows everything,
        each of the others a part."""
        views_params = [{**params, **view} for view in views or ({},)]
        listings, batch = self._read_listings(operation, views_params)
        is_one_page = len(batch.request_ids) == 1
        if is_one_page and self.is_recognised:
            return batch
        batch = self._compare_keys(batch, listings)
        is_nothing_gone = batch.known_count == batch.kept_count
        if is_one_page or is_nothing_gone or batch.failures or batch.shortfall:
            return batch
        try:
            _, second = self._read_listings(operation, views_params, reuses=False)
        except MarketingApiError as error:
            failure = Failure(operation.bind(**views_params[0]), error)
            second = Batch(is_complete=False, failures=(failure,))
        count = second.service_count or batch.service_count
        batch = replace(batch + second, is_complete=second.is_complete, service_count=count)
        if second.is_complete:
            return batch
        shortfall = f"{operation.name}: {_UNCONFIRMED}"
        return replace(batch, scope={"reason": _UNCONFIRMED}, shortfall=shortfall)

    def _read_listings(
        self,
        operation: Operation,
        views_params: Iterable[Mapping[str, Any]],
        *,
        reuses: bool = True,
    ) -> tuple[list[paging.Listing], Batch]:
        """The listings, each read once, and the responses of all.

        If a listing after the first is refused, only its own entries are missing.
        """
        listings = [paging.Listing(operation, params) for params in views_params]
        batches = list[Batch]()
        for listing in listings:
            try:
                batches.append(self._read_view(listing, reuses=reuses))
            except (Refused, NotAvailable) as refusal:
                if not batches:
                    raise
                self.result.failures.append(Failure(operation.bind(**listing.params), refusal))
        is_complete = all(batch.is_complete for batch in batches)
        shortfalls = [batch.shortfall for batch in batches if batch.shortfall]
        shortfall = "; ".join(shortfalls)
        joined = sum(batches[1:], batches[0])
        return listings, replace(joined, is_complete=is_complete, shortfall=shortfall)

    def _read_view(self, listing: paging.Listing, *, reuses: bool) -> Batch:
        operation = listing.operation
        ids = list[int]()
        failures: tuple[Failure, ...] = ()
        self.operations.add(operation)
        self.result.planned += 1
        fetch = partial(self._fetch_call, reuses=reuses)
        try:
            for response in listing.pages(fetch):
                ids.append(response.request_id)
        except Transient as error:
            if not ids:
                raise
            failures = (Failure(operation.bind(**listing.params), error),)
        self.result.fetched += 1
        is_complete = not failures and listing.is_complete
        is_short = listing.missing and not failures
        shortfall = ""
        if is_short:
            missing = f"{listing.missing:,} entries that the service counts were not listed"
            shortfall = f"{operation.name}: {missing}"
        return Batch(
            tuple(ids),
            is_complete=is_complete,
            service_count=listing.service_count,
            failures=failures,
            shortfall=shortfall,
        )

    def _compare_keys(self, batch: Batch, listings: Sequence[paging.Listing]) -> Batch:
        """The batch with three counts: known rows of its scope, how many of them the listings have,
        and how many other rows the listings have."""
        params = listings[0].params
        zone = str(self.session.zone)
        keys = self.warehouse.known_keys(self.tables[0], self.account, params, zone)
        listed = {key for listing in listings for key in listing.keys}
        is_listed = Counter(key in listed for key in keys)
        kept_count = is_listed[True]
        return replace(
            batch,
            known_count=is_listed.total(),
            kept_count=kept_count,
            unknown_count=len(listed) - kept_count,
        )

    def hold_until_recognised(self, batches: Batches) -> Batches:
        """Listings that distinguish accounts. They are held back until one of them has a known row.

        Raises OtherBusiness if none has a known row but some have others; then nothing is loaded.
        """
        table = self.tables[0]
        if not self.warehouse.has_rows(table, self.account):
            self.is_recognised = True
        waiting: list[Batch] = []
        for batch in batches:
            waiting.append(batch)
            self.is_recognised = self.is_recognised or batch.kept_count > 0
            if self.is_recognised:
                yield from waiting
                waiting.clear()
        known_count = sum(batch.known_count for batch in waiting)
        unknown_count = sum(batch.unknown_count for batch in waiting)
        if known_count and unknown_count:
            raise make_other_business_error(
                f"{known_count:,} known {table.name} is listed, but {unknown_count:,} others are"
            )
        yield from waiting

    def fetch_listings(self, operation: Operation, many: Iterable[Mapping[str, Any]]) -> Batches:
        """Paged listings of several scopes, a few at the same time, and a batch for each."""

        def read_one(params: Mapping[str, Any]) -> Batch:
            try:
                return self.fetch_pages(operation, **params)
            except (Transient, Refused) as error:
                failure = Failure(operation.bind(**params), error)
                return Batch(is_complete=False, failures=(failure,))

        threads = self.session.listings_at_once
        with ThreadPoolExecutor(threads, thread_name_prefix="listing") as pool:
            yield from pool.map(read_one, many)

    def fetch_many(self, operation: Operation, many: Iterable[Mapping[str, Any]]) -> Batches:
        """One request for each of `many`, in about that order, in batches of some hundred
        responses. If `many` is empty, one batch that says so."""
        self.operations.add(operation)
        calls, failures = _bind_all(operation, many)
        self.result.planned += len(calls)
        responses: list[Response] = []
        since = time.monotonic()
        try:
            for result in self._fetch_results(calls):
                self.result.fetched += 1
                if isinstance(result, Failure):
                    failures.append(result)
                else:
                    responses.append(result)
                is_late = time.monotonic() - since > BATCH_SECONDS
                if is_late or len(responses) >= BATCH_RESPONSES:
                    # incomplete, since more batches follow
                    yield replace(Batch.from_responses(responses), is_complete=False)
                    responses = []
                    since = time.monotonic()
        except (AuthenticationFailed, BudgetSpent, Stopped):
            yield replace(Batch.from_responses(responses, failures), is_complete=False)
            raise
        if responses or failures:
            yield Batch.from_responses(responses, failures)
        else:  # nothing was due, or all responses were yielded already
            yield Batch(is_nothing_due=True)

    def fetch_planned(self, operation: Operation, params: Params) -> Batches:
        """The contacts of the crawl plan, and others with responses of a run that died."""
        self.result.plan = entry = self.plan.make_contact_plan().entries[self.name]
        keys = entry.keys.to_pylist()
        many = [params(key) for key in keys]
        if self.name in self.session.unfinished:
            many += self._left_behind(operation, params, set(keys))
        finished = 0
        for batch in self.fetch_many(operation, many):
            finished += len(batch.request_ids) + len(batch.failures)
            # Until the last response is there, the next night must continue.
            is_last = finished >= len(many)
            is_complete = is_last and entry.is_whole
            due_at = entry.due_at if is_last else None
            yield replace(batch, is_complete=is_complete, due_at=due_at)

    def learn_refusals(self) -> None:
        """Learn which refusals of addresses mean that there are no coupons, from the requests of
        all runs including this one."""
        result = self.result
        archive = self.warehouse.archive
        if not result.failures:
            return
        result.nothing = self.plan.refused_as_nothing()
        if result.unexplained and len(result.failures) < result.fetched:
            archive.seal_requests()
            with self.warehouse.open_for_writing() as connection:
                load_requests(connection, archive)
            result.learn_refusals(self.plan.refused_as_nothing())

    def _left_behind(
        self, operation: Operation, params: Params, planned: set[Any]
    ) -> list[Mapping[str, Any]]:
        """Requests outside the plan whose archived response is newer than the loaded one: responses
        must not be lost."""
        rows = self.plan.find_candidates(self.name)
        keys = rows[0].to_pylist()
        loaded_ids = rows["request_id"].to_pylist()
        found = []
        for key, loaded_id in zip(keys, loaded_ids, strict=True):
            if key in planned:
                continue
            try:
                call = operation.bind(**params(key))
            except InvalidCall:
                continue
            request_id = self.session.left_behind(self.name, call)
            if request_id is None:
                continue
            if loaded_id is None or request_id > loaded_id:
                found.append(params(key))
        return found

    def fetch_all(self, operation: Operation, many: Iterable[Mapping[str, Any]]) -> Batch:
        """One request for each of `many`, all in one batch: details, which are loaded together with
        their listing."""
        first, *more_batches = self.fetch_many(operation, many)
        return sum(more_batches, first)

    def with_details(self, listing: Batch, operation: Operation, params: Params) -> Batch:
        """A listing for the first table, and the details of entries that are new or have changed
        since their details were last fetched."""
        (listing,) = self.hold_until_recognised(iter([listing]))
        table = self.tables[0]
        responses = self.warehouse.archive.responses(listing.request_ids)
        hashes = self.warehouse.listing_hashes(table, self.account)
        changed = needs_detail(table, responses, hashes, self.session.zone)
        return listing + self.fetch_all(operation, map(params, changed))

    def _fetch_call(self, call: Call, *, reuses: bool = True) -> Response:
        (result,) = self._fetch_results([call], reuses=reuses)
        if isinstance(result, Failure):
            raise result.error
        return result

    def _fetch_results(
        self, calls: Iterable[Call], *, reuses: bool = True
    ) -> Iterator[Response | Failure]:
        """The result of each call. A call is not requested again if this run had a refusal for it,
        or if the archive has an unused response."""
        session = self.session
        refused = session.refused
        unavailable = session.unavailable

        def find_known(call: Call) -> Response | Failure | None:
            error = unavailable.get(call.operation.name)
            if call.key in refused:
                return refused[call.key]
            response = session.find_response(self.name, call) if reuses else None
            if response is None and error:
                return Failure(call, error)
            return response

        for result in session.client.fetch_many(calls, known=find_known, urgency=self.urgency):
            # a second try in this run would be refused like the first
            if isinstance(result, Failure):
                if isinstance(result.error, Refused):
                    refused[result.call.key] = result
                elif isinstance(result.error, NotAvailable):
                    unavailable[result.call.operation.name] = result.error
            yield result


def _bind_all(
    operation: Operation, many: Iterable[Mapping[str, Any]]
) -> tuple[list[Call], list[Failure]]:
    """Calls, and a failure for each value that the declaration does not allow, such as an address
    without @."""
    calls = list[Call]()
    bad = list[Failure]()
    for params in many:
        try:
            calls.append(operation.bind(**params))
        except InvalidCall as error:
            raw_params = {name: str(value) for name, value in params.items()}
            bad.append(Failure(Call(operation, raw_params), error))
    return calls, bad
