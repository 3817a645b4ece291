"""What an asset function is given: ways to fetch from one account.

    method                   what it requests                               returns
    fetch_one                one request, which is the whole listing        a batch
    fetch_pages              every page of a listing, or of several views   a batch
    fetch_listings           paged listings, one for each set of parameters a batch for each
    fetch_days               the due range of days                          a batch for each range
    fetch_series             the same of daily series, and what was cut off a batch for each range
    fetch_many               one request for each set of parameters         batches of 500 responses
    fetch_all                the same                                       a batch
    fetch_planned            what the crawl plan chooses                    batches of 500 responses
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

#: A batch of a fan-out is loaded after so many responses or seconds, so that a run cut short keeps
#: its work in the tables.
BATCH_RESPONSES = 500
BATCH_SECONDS = 30.0
#: Requests of one run for what the service left out of a series; the next run goes on.
_MAX_RETRIED_RANGES = 50
#: Days that lack for longer, and were requested again in vain, are no news: they are shown, and
#: fail no run.
_NEWS = dt.timedelta(days=28)
#: Rows of a daily series from so long before the requested days show whether it lists every day.
_SERIES_BEFORE = dt.timedelta(days=28)

#: Why nothing of a listing of several pages is marked as deleted.
_UNCONFIRMED = (
    "rows are gone from several pages, which were not read a second time to confirm it: nothing "
    "was marked as deleted"
)

#: What the function of an asset yields.
Batches = Iterator[Batch]
#: Turns a key of the crawl plan, or an entry of a listing, into the parameters of a request.
Params = Callable[[Any], Mapping[str, Any]]


def refuse_paged(operation: Operation) -> None:
    """Raises InvalidCall where one request would take the first page for the whole listing."""
    if operation.is_paged:
        raise InvalidCall(
            f"{operation.name} has pages: declare an asset that reads them with `fetch.pages`"
        )


@dataclass(frozen=True)
class FetchSettings:
    """The settings that decide what is fetched; see `home.settings` for what they mean."""

    history_start: dt.date
    lookback_days: int = 7
    goal_domains: tuple[int, ...] = ()


@dataclass(eq=False)
class Fetcher:
    """Fetches from one account for the asset of this name, counting in `result`. Of several the one
    of the highest `urgency` goes first."""

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
        #: A listing has a row that is known, so that it is the same account's.
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
        """A date-ranged read: the whole range at once, or year by year where the service refuses so
        much."""
        for _, batch in self._fetch_ranges(operation, deque(self._list_due_ranges(ahead)), params):
            yield batch

    def fetch_series(self, operation: Operation, **params: Any) -> Batches:
        """A date-ranged read of daily series; what a response left out of them is requested again,
        in a range of its own."""
        whole = self._list_due_ranges()
        covered = []
        if not self.chosen_days:
            covered = self._covered_ranges()
        lacking = {days.first for days in self._covered_ranges(is_complete=False)}
        known = self._days_listed(whole)
        todo = deque(whole)
        more = _MAX_RETRIED_RANGES
        for days, batch in self._fetch_ranges(operation, todo, params):
            served = self._list_days(batch, days)
            if served is None:
                yield batch
                continue
            proof = prove_days(days, served, known, covered, self.today)
            known = [
                listed_before | listed_here
                for listed_before, listed_here in zip(known, served, strict=True)
            ]
            if proof.days:
                yield replace(batch, days=proof.days)
            for days_left_out in filter(None, (proof.before, proof.after)):
                is_known = days_left_out is proof.after and days_left_out.first in lacking
                if any(served) and more and not is_known:
                    todo.append(days_left_out)
                    more -= 1
                else:
                    yield self._note_lacking(batch, operation, days_left_out, is_known=is_known)

    def _days_listed(self, ranges: Iterable[DateRange]) -> list[set[dt.date]]:
        """For each range and table, the days in it, and shortly before it, that the table has rows
        of."""
        lists = self.warehouse.listed_days
        return [
            set(lists(table, self.account, days.first - _SERIES_BEFORE, days.last))
            for days in ranges
            for table in self.tables
        ]

    def _fetch_ranges(
        self, operation: Operation, todo: deque[DateRange], params: Mapping[str, Any]
    ) -> Iterator[tuple[DateRange, Batch]]:
        """Each range and its responses, or its years' where the service refuses so much. Whoever
        takes them may add to `todo`."""
        while todo:
            days = todo.popleft()
            range_params = {**params, "from": days.first, "to": days.last}
            try:
                batch = (
                    self.fetch_pages(operation, **range_params)
                    if operation.is_paged
                    else self.fetch_one(operation, **range_params)
                )
            except Refused:
                if days.first.year == days.last.year:
                    raise
                todo.extendleft(reversed(list(days.split_years())))
            else:
                yield days, replace(batch, days=days)

    def _list_due_ranges(self, ahead: int = 0) -> list[DateRange]:
        """The days that this run reads again, or for the first time; none of an account where those
        that were chosen are still to come."""
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
        """Ranges of days that were read completely, after they had ended in the account's zone; or
        that were not."""
        zone = str(self.session.zone)
        ranges = self.warehouse.covered_days(
            self.tables[0], self.account, zone, is_complete=is_complete
        )
        return [DateRange(first, last) for first, last in ranges]

    def _list_days(self, batch: Batch, requested: DateRange) -> list[set[dt.date]] | None:
        """The requested days that the response lists, by table; None when an entry cannot be read:
        it may be of any day."""
        listed: dict[type[Record], set[dt.date]] = {table.record: set() for table in self.tables}
        columns = {
            table.record: table.load.column
            for table in self.tables
            if isinstance(table.load, Window)
        }
        for response in self.warehouse.archive.responses(batch.request_ids):
            for rows in parse_rows(response, self.session.zone, self.today):
                if rows.rejected or rows.missing:
                    return None
                listed[rows.record] |= {
                    day
                    for record in rows.records
                    if (day := getattr(record, columns[rows.record])) in requested
                }
        return list(listed.values())

    def _note_lacking(
        self, batch: Batch, operation: Operation, days: DateRange, *, is_known: bool
    ) -> Batch:
        """Days of a series that were left out and did not come in a range of their own either."""
        days = DateRange(days.first, min(days.last, self.today - NOT_YET))
        reason = "left out by the service, which lists the days around them"
        is_news = not is_known or days.first > self.today - _NEWS
        shortfall = ""
        if is_news:
            shortfall = f"{operation.name}, {days}: {reason}; they are requested again"
        return replace(
            batch, days=days, scope={"reason": reason}, is_complete=False, shortfall=shortfall
        )

    def fetch_pages(self, operation: Operation, *views: Mapping[str, Any], **params: Any) -> Batch:
        """Every page of a listing; when a page does not come, the pages before it as an incomplete
        batch.

        A listing may change between two of its pages. Where something is gone from several, it is
        read once more: a row is gone when neither reading shows it, and none is when the second one
        does not come whole.

        `views`: parameters of several listings that are one together; the first shows everything,
        the others a part each."""
        views_params = [{**params, **view} for view in views or ({},)]
        listings, batch = self._read_listings(operation, views_params)
        if len(batch.request_ids) == 1 and self.is_recognised:
            return batch
        batch = self._compare_keys(batch, listings)
        if (
            len(batch.request_ids) == 1
            or batch.known_count == batch.kept_count
            or batch.failures
            or batch.shortfall
        ):
            return batch
        try:
            _, second = self._read_listings(operation, views_params, reuses=False)
        except MarketingApiError as error:
            second = Batch(
                is_complete=False, failures=(Failure(operation.bind(**views_params[0]), error),)
            )
        count = second.service_count or batch.service_count
        batch = replace(batch + second, is_complete=second.is_complete, service_count=count)
        if second.is_complete:
            return batch
        return replace(
            batch, scope={"reason": _UNCONFIRMED}, shortfall=f"{operation.name}: {_UNCONFIRMED}"
        )

    def _read_listings(
        self,
        operation: Operation,
        views_params: Iterable[Mapping[str, Any]],
        *,
        reuses: bool = True,
    ) -> tuple[list[paging.Listing], Batch]:
        """The listings as they are read once, in their order, and the responses of all.

        One behind the first that is refused costs what it alone tells.
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
        shortfall = "; ".join(filter(None, (batch.shortfall for batch in batches)))
        return listings, replace(
            sum(batches[1:], batches[0]), is_complete=is_complete, shortfall=shortfall
        )

    def _read_view(self, listing: paging.Listing, *, reuses: bool) -> Batch:
        operation = listing.operation
        ids = list[int]()
        failures: tuple[Failure, ...] = ()
        self.operations.add(operation)
        self.result.planned += 1
        try:
            for response in listing.pages(partial(self._fetch_call, reuses=reuses)):
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
        """With how many of the rows that are known of its scope the listings have, and how many
        others."""
        params = listings[0].params
        zone = str(self.session.zone)
        keys = self.warehouse.known_keys(self.tables[0], self.account, params, zone)
        listed = {key for listing in listings for key in listing.keys}
        is_listed = Counter(key in listed for key in keys)
        return replace(
            batch,
            known_count=is_listed.total(),
            kept_count=is_listed[True],
            unknown_count=len(listed) - is_listed[True],
        )

    def hold_until_recognised(self, batches: Batches) -> Batches:
        """Listings that tell one account from another, each held back until one of them has a row
        that is known.

        Raises OtherBusiness when none has, though others came: nothing of them is loaded.
        """
        name = self.tables[0].name
        self.is_recognised = self.is_recognised or not self.warehouse.has_rows(
            self.tables[0], self.account
        )
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
                f"{known_count:,} {name} known is listed, and {unknown_count:,} others are"
            )
        yield from waiting

    def fetch_listings(self, operation: Operation, many: Iterable[Mapping[str, Any]]) -> Batches:
        """Paged listings of several scopes, a few at a time, each a batch of its own."""

        def read_one(params: Mapping[str, Any]) -> Batch:
            try:
                return self.fetch_pages(operation, **params)
            except (Transient, Refused) as error:
                return Batch(
                    is_complete=False, failures=(Failure(operation.bind(**params), error),)
                )

        with ThreadPoolExecutor(
            self.session.listings_at_once, thread_name_prefix="listing"
        ) as pool:
            yield from pool.map(read_one, many)

    def fetch_many(self, operation: Operation, many: Iterable[Mapping[str, Any]]) -> Batches:
        """One request for each of `many`, in about that order, in batches of some hundred
        responses; of nothing, a batch that notes it."""
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
                if len(responses) >= BATCH_RESPONSES or time.monotonic() - since > BATCH_SECONDS:
                    # there is more to come: a run that dies has not read it
                    yield replace(Batch.from_responses(responses), is_complete=False)
                    responses = []
                    since = time.monotonic()
        except (AuthenticationFailed, BudgetSpent, Stopped):
            yield replace(Batch.from_responses(responses, failures), is_complete=False)
            raise
        if responses or failures:
            yield Batch.from_responses(responses, failures)
        else:  # nothing was due, or all of it came already
            yield Batch(is_nothing_due=True)

    def fetch_planned(self, operation: Operation, params: Params) -> Batches:
        """What the crawl plan fetches of contacts, and what a run that died has responses to."""
        self.result.plan = entry = self.plan.make_contact_plan().entries[self.name]
        keys = entry.keys.to_pylist()
        many = [params(key) for key in keys]
        if self.name in self.session.unfinished:
            many += self._left_behind(operation, params, set(keys))
        through = 0
        for batch in self.fetch_many(operation, many):
            through += len(batch.request_ids) + len(batch.failures)
            # Until the last of them is there, the next night has to go on.
            is_last = through >= len(many)
            yield replace(
                batch,
                is_complete=is_last and entry.is_whole,
                due_at=entry.due_at if is_last else None,
            )

    def learn_refusals(self) -> None:
        """Take refusals of addresses by which the service reports that there is nothing as what
        they are: by the requests of all runs, this one's included."""
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
        """Requests outside the plan whose archived response is newer than what is loaded: responses
        must not be lost."""
        rows = self.plan.find_candidates(self.name)
        found = []
        for key, loaded in zip(rows[0].to_pylist(), rows["request_id"].to_pylist(), strict=True):
            if key in planned:
                continue
            try:
                request_id = self.session.left_behind(self.name, operation.bind(**params(key)))
            except InvalidCall:
                continue
            if request_id is not None and request_id > (loaded or 0):
                found.append(params(key))
        return found

    def fetch_all(self, operation: Operation, many: Iterable[Mapping[str, Any]]) -> Batch:
        """One request for each of `many`, all in one batch: details beside the listing they belong
        to."""
        first, *more_batches = self.fetch_many(operation, many)
        return sum(more_batches, first)

    def with_details(self, listing: Batch, operation: Operation, params: Params) -> Batch:
        """A listing for the first table, and the details of its entries that are new, or differ
        from when theirs were last fetched."""
        (listing,) = self.hold_until_recognised(iter([listing]))
        table = self.tables[0]
        responses = self.warehouse.archive.responses(listing.request_ids)
        changed = needs_detail(
            table, responses, self.warehouse.listing_hashes(table, self.account), self.session.zone
        )
        return listing + self.fetch_all(operation, map(params, changed))

    def _fetch_call(self, call: Call, *, reuses: bool = True) -> Response:
        (result,) = self._fetch_results([call], reuses=reuses)
        if isinstance(result, Failure):
            raise result.error
        return result

    def _fetch_results(
        self, calls: Iterable[Call], *, reuses: bool = True
    ) -> Iterator[Response | Failure]:
        """What need not be requested, since it was refused in this run or is in the archive and
        unused, and what the client fetches."""
        session = self.session
        refused = self.session.refused
        unavailable = self.session.unavailable

        def find_known(call: Call) -> Response | Failure | None:
            found = refused.get(call.key) or (
                session.find_response(self.name, call) if reuses else None
            )
            if found:
                return found
            error = unavailable.get(call.operation.name)
            if error:
                return Failure(call, error)
            return None

        for result in session.client.fetch_many(calls, known=find_known, urgency=self.urgency):
            # a second try of this run would be refused like the first
            if isinstance(result, Failure):
                if isinstance(result.error, Refused):
                    refused[result.call.key] = result
                elif isinstance(result.error, NotAvailable):
                    unavailable[result.call.operation.name] = result.error
            yield result


def _bind_all(
    operation: Operation, many: Iterable[Mapping[str, Any]]
) -> tuple[list[Call], list[Failure]]:
    """Calls, and a failure for each value that the declaration does not allow (an address without
    @, say)."""
    calls = list[Call]()
    bad = list[Failure]()
    for params in many:
        try:
            calls.append(operation.bind(**params))
        except InvalidCall as error:
            raw_params = {name: str(value) for name, value in params.items()}
            bad.append(Failure(Call(operation, raw_params), error))
    return calls, bad
