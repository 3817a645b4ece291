"""`marketing-sync doctor --probe`: what the service really answers, beside what is expected of it
(`marketing_api/expected.toml`).

At most 40 requests, all of them reads, and a report that names members and forms, never values: whoever keeps
this program may be sent it. Not here: how one response is compared (`marketing_api.expected`)."""

import datetime as dt
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from zoneinfo import ZoneInfo, available_timezones

from home.texts import text_template
from marketing_api import __version__
from marketing_api.client import Connection, RequestBudget
from marketing_api.clock import utc_now
from marketing_api.errors import BudgetSpent, InvalidCall, MarketingApiError, ServiceError
from marketing_api.exchange import Exchange, Outcome, Response
from marketing_api.expected import UNANNOUNCED, Comparison, Deviation, form_of, reads, shown
from marketing_api.operation import Call, Operation
from marketing_api.operations import account, find
from marketing_api.pacing import SPECIFIED_RATE
from marketing_api.parsing import business_of, item_keys, service_count
from marketing_api.rate_limit import limit_in_body, limit_in_headers
from marketing_api.records.values import read_decimal, read_or_none
from pipelines.commands.call import client_by_hand

log = logging.getLogger(__name__)

MOST_REQUESTS = 40
#: Entries of the first two pages of a listing, by which its paging is seen.
_PAGE = 2
#: Outcomes of a last try that leave open what the response would be.
_NO_RESPONSE = (Outcome.BROKEN, Outcome.UNREACHABLE, Outcome.RATE_LIMITED)
_LIMIT = ("limit", "requests", "remaining", "reached", "reset", "after")


class _NothingSeen(Exception):
    """There was no entry from which a parameter could be taken; the message says of what."""


@dataclass
class Probe:
    """What was found at one account. `settled`: what the interface leaves open, and how it is here;
    `untried`: reads without a request."""

    connection: Connection
    accept: Callable[[Response], object] = lambda _: None
    comparisons: dict[str, Comparison] = field(default_factory=dict)
    deviations: set[Deviation] = field(default_factory=set)
    settled: dict[str, str] = field(default_factory=dict)
    untried: dict[str, str] = field(default_factory=dict)
    requests: int = 0
    zone: ZoneInfo | None = None
    _problems: dict[str, str | None] = field(default_factory=dict)
    _limits: set[str] = field(default_factory=set)

    def run(self) -> None:
        """Raises what `app/me` raises: without it there is nothing to find out."""
        with client_by_hand(
            self.connection, self.accept, record=self._record, budget=RequestBudget(MOST_REQUESTS)
        ) as (client, limiter):
            self._greet(client.fetch(account.ME.bind()))
            for operation in map(find, reads()):
                if operation is not account.ME:
                    self._try(operation, client.fetch)
            self.settled["limit"] = (
                f"{limiter.limit:,.15g} requests a second, told in "
                f"{' and '.join(sorted(self._limits)) or 'nothing'}"
            )
        for name, problem in self._problems.items():
            if problem:  # without the service's words, which may be about somebody
                self._deviates(
                    "response", "to be whole", problem.removeprefix(f"{name}: ").partition(" (")[0], name
                )
        for comparison in self.comparisons.values():
            comparison.missing()
            self.deviations |= comparison.deviations

    def _greet(self, response: Response) -> None:
        business = business_of(response)
        name = (business and business.timezone) or self.connection.timezone
        self.zone = ZoneInfo(name) if name in available_timezones() else None
        self.settled["the account's time zone is told"] = "yes" if business and business.timezone else "no"
        self._comparison(account.ME).response(response, self.zone)

    def _comparison(self, operation: Operation) -> Comparison:
        return self.comparisons.setdefault(operation.name, Comparison(operation.name))

    def _record(self, exchange: Exchange) -> None:
        self.requests += 1
        self._problems[exchange.call.operation.name] = (
            exchange.error if exchange.outcome in _NO_RESPONSE else None
        )
        told = {"the headers": limit_in_headers(exchange.headers), "the body": limit_in_body(exchange.opened)}
        self._limits |= {place for place, values in told.items() if values}
        if not any(told.values()):
            self._deviates("rate-limit", "in the body or the headers", "missing")
        for place, values in told.items():
            for name in values.keys() - set(_LIMIT):
                self._deviates(f"rate-limit, {place}: {shown(name)}", "nothing", UNANNOUNCED)
            for name in _LIMIT if values else ():
                self._check_limit(f"rate-limit, {place}: {name}", values.get(name))

    def _check_limit(self, place: str, value: Any) -> None:
        number = read_or_none(read_decimal, value)
        if number is None:
            self._deviates(place, "a number", "missing" if value is None else form_of(value))
        elif place.endswith(" limit") and number > SPECIFIED_RATE:
            self._deviates(place, f"at most {SPECIFIED_RATE:g}", "more")

    def _deviates(self, place: str, expected: str, found: str, operation: str = "every operation") -> None:
        self.deviations.add(Deviation(operation, place, expected, found))

    def _try(self, operation: Operation, fetch: Callable[[Call], Response]) -> None:
        """One request, or three of a listing with pages."""
        seen = {name: value for each in self.comparisons.values() for name, value in each.seen.items()}
        whole = {"limit": 1000, "page": 1, **reads()[operation.name].whole}
        pages: list[Mapping[str, Any]] = [{"limit": _PAGE, "page": 1}, {"limit": _PAGE, "page": 2}, whole]
        try:
            responses = [
                fetch(_call(operation, seen, place)) for place in (pages if operation.is_paged else [{}])
            ]
        except InvalidCall as problem:
            self.untried[operation.name] = (
                f"its {problem.parameter}, as it was read before, is none that can be sent"
            )
        except (_NothingSeen, BudgetSpent) as problem:
            self.untried[operation.name] = str(problem)
        except ServiceError as problem:
            self._refused(operation, problem)
        except MarketingApiError:  # noted as it was recorded
            pass
        else:
            self._compare(operation, responses)

    def _compare(self, operation: Operation, responses: Sequence[Response]) -> None:
        try:
            for response in responses:
                self._comparison(operation).response(response, self.zone)
            if operation.is_paged:
                self._compare_pages(operation, *responses)
            else:
                self._compare_count(operation, responses[0])
        except Exception as problem:  # whatever a stranger's response makes of a parser
            log.exception("a response of %s cannot be compared", operation.name)
            self._deviates("response", "to be readable", type(problem).__name__, operation.name)

    def _refused(self, operation: Operation, problem: ServiceError) -> None:
        how = "without an errorCode" if problem.code is None else f"with errorCode {problem.code}"
        self.settled[f"{operation.name} is refused"] = how
        if not reads()[operation.name].may_be_refused:
            self._deviates("response", "to be there", f"refused {how}", operation.name)

    def _compare_count(self, operation: Operation, response: Response) -> None:
        is_of_entries = reads()[operation.name].kind.startswith("listing of")
        listed, counted = len(item_keys(response)), service_count(response)
        if is_of_entries and operation.records and counted is not None and counted != listed:
            self._deviates("count", "the number of entries", "another number", operation.name)

    def _compare_pages(
        self, operation: Operation, first: Response, second: Response, whole: Response
    ) -> None:
        one, two, everything = (item_keys(response) for response in (first, second, whole))
        counted, total = service_count(first), service_count(whole)
        if len(everything) > _PAGE:
            is_short, is_next = len(one) <= _PAGE, not set(one) & set(two)
            self._settle_paging(operation, "limit", is_well=is_short or operation.is_grouped)
            self._settle_paging(operation, "page", is_well=is_next)
            meaning = {len(one): "that of the page", total: "that of all entries"}.get(
                counted, "another number"
            )
            self.settled[f"`count` of {operation.name}"] = meaning
        if total is not None and total > len(everything):
            self.settled[f"entries on a page of {operation.name}"] = (
                f"at most {len(everything):,} of {total:,}"
            )

    def _settle_paging(self, operation: Operation, name: str, *, is_well: bool) -> None:
        self.settled[f"`{name}` of {operation.name}"] = "honoured" if is_well else "ignored"
        is_open = "14" in reads()[operation.name].rows.split()
        if not is_well and not is_open:
            self._deviates(name, "to be honoured", "ignored", operation.name)

    def report(self) -> str:
        """Without the account's name and any value of a response."""
        at = utc_now()
        versions = {"at": at, "version": __version__}
        return text_template(__file__).render(probe=self, forms=self._forms(), **versions)

    def _forms(self) -> Mapping[str, Mapping[str, str]]:
        """By operation and place: how often it had which form."""
        found: dict[str, dict[str, list[str]]] = {}
        for comparison in self.comparisons.values():
            for (place, form), count in sorted(comparison.forms.items()):
                found.setdefault(comparison.operation, {}).setdefault(place, []).append(f"{form} ({count:,})")
        return {
            name: {place: ", ".join(forms) for place, forms in places.items()}
            for name, places in found.items()
        }


def _call(operation: Operation, seen: Mapping[str, Any], place: Mapping[str, Any]) -> Call:
    """With parameters taken from what was read before. Raises InvalidCall, or _NothingSeen."""
    given = {name: _value(each, seen) for name, each in reads()[operation.name].params.items()}
    return operation.bind(**{**given, **place})


def _value(given: Any, seen: Mapping[str, Any]) -> Any:
    if isinstance(given, int) and not isinstance(given, bool):
        return utc_now().date() - dt.timedelta(days=given)
    if not isinstance(given, str) or "." not in given:
        return given
    if given not in seen:
        raise _NothingSeen(f"there is no {given.partition('.')[0].replace('_', ' ')} to ask about")
    return seen[given]
