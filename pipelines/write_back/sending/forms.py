"""In which requests a contact sync is sent: one, unless the service wants a status with it, or one list at a time.

That is learned from a refusal which another form got around, for as long as one sending lasts. Not here: sending (`delivery`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import Enum
from typing import Any

from marketing_api.errors import Refused
from marketing_api.exchange import Response
from marketing_api.operation import Call
from marketing_api.records.contacts import STATUSES
from marketing_api.write_result import says_absent
from pipelines.write_back.input.values import STATUS_WORDS
from pipelines.write_back.item import Kind
from pipelines.write_back.outbox.entry import Entry
from pipelines.write_back.sending.finding import look_up

_Params = Mapping[str, str]
_SENT_AS = {word: STATUS_WORDS[code] for code, word in STATUSES.items()}

#: Read back: the lists that a request named, and those of them that show what it said.
LISTS = "lists"


class Want(Enum):
    """What a service may want of a contact sync beyond the specification. The pattern is how it says so."""

    STATUS = re.compile(r"\bstatus\b", re.IGNORECASE)
    ONE_LIST = re.compile(r"\blists?\b|\blist_?ids?\b", re.IGNORECASE)


class Forms:
    """Of one sending. Thread-safe: at worst several threads learn the same."""

    def __init__(self, ask: Callable[[Call], Response]) -> None:
        self._ask = ask
        self._learned: frozenset[Want] = frozenset()

    def wants(self, entry: Entry) -> frozenset[Want]:
        """As far as it is known. What was read back with a list missing goes list by list from then on."""
        return self._learned | ({Want.ONE_LIST} if LISTS in (entry.drift or {}) else frozenset())

    def learn(self, wants: frozenset[Want]) -> None:
        """Requests in this form were taken, in others they were not."""
        self._learned |= wants

    def of(self, entry: Entry, wants: frozenset[Want]) -> list[_Params]:
        """The requests, one after the other. Raises what asking raises, and Refused when the contact's status cannot be told."""
        params = entry.params
        if entry.kind is not Kind.CONTACTS or not wants:
            return [params]
        if Want.STATUS not in wants or "status" in params:
            return [{**params, "listid": lists} for lists in (_lists(params) if Want.ONE_LIST in wants else [params["listid"]])]
        by_status: dict[str, list[str]] = {}
        for list_id in _lists(params):
            by_status.setdefault(self._status(params["email"], int(list_id)), []).append(list_id)
        return [
            {**params, "listid": lists, "status": status}
            for status, several in by_status.items()
            for lists in (several if Want.ONE_LIST in wants else [",".join(several)])
        ]

    def _status(self, email: str, list_id: int) -> str:
        """What the service says now: nobody is subscribed again by the way."""
        found = [one for one in look_up(self._ask, email, list_id) if one.list_id in (None, list_id)]
        statuses = {_SENT_AS.get(str(one.status)) or str(one.status) for one in found}
        if not found:
            raise Refused(f"the service wants a status, and the contact is no longer on list {list_id}: say one in a column status")
        if len(statuses) > 1 or not statuses <= set(_SENT_AS.values()):
            raise Refused(f"the service wants a status, and tells no single one for list {list_id}: say one in a column status")
        return statuses.pop()


def wanted_by(refusal: Refused, entry: Entry) -> frozenset[Want]:
    """What the refusal asks for in another form, by its words or the fields that it names.

    That the contact does not exist is no answer to a sync, which makes it: some services say so whatever they refuse (row 5).
    """
    if entry.kind is not Kind.CONTACTS:
        return frozenset()
    params = entry.params
    told = " ".join([str(refusal), *_texts(refusal.detail.get("fields"))])
    possible = {Want.STATUS: "status" not in params, Want.ONE_LIST: len(_lists(params)) > 1}
    is_nonsense = says_absent(str(refusal))
    return frozenset(want for want, is_possible in possible.items() if is_possible and (is_nonsense or want.value.search(told)))


def _lists(params: _Params) -> list[str]:
    return params.get("listid", "").split(",")


def _texts(fields: Any) -> Iterator[str]:
    if isinstance(fields, Mapping):
        fields = [*fields, *fields.values()]
    yield from map(str, fields if isinstance(fields, Iterable) and not isinstance(fields, str) else [fields])
