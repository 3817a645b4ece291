"""Pagination: reading a listing to its end, although neither `count` nor the size of a page can be
trusted (observations 14 and 15).

Belongs here: which page to request next, and when the listing is over. Not here: the requests
(passed in), what the entries mean."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from marketing_api import parsing
from marketing_api.exchange import Response
from marketing_api.operation import Call, Operation

Fetch = Callable[[Call], Response]
#: Entries requested at a time.
PAGE_SIZE = 1000


class Listing:
    """One reading of a listing.

        listing = Listing(contacts.GETCONTACTS, {"id": 12})
        for response in listing.pages(client.fetch): ...

    Its figures are those of the pages read so far.
    """

    def __init__(self, operation: Operation, params: Mapping[str, Any]) -> None:
        self.operation = operation
        self.params = dict(params)
        self.is_over = False
        self.pages_read = 0
        self.rows = 0  # entries served, repeated ones not counted
        self.service_count: int | None = None  # as last named: of one page or of everything
        #: Entries went away while it was read, so others moved up to a page that had been read.
        self.has_moved = False
        self._total = 0  # as last named
        self.keys: set[str] = set()  # of the entries served (`parsing.item_keys`)

    @property
    def missing(self) -> int:
        """Entries that the service announced and did not serve."""
        return max(0, (self.service_count or 0) - self.rows)

    @property
    def is_complete(self) -> bool:
        """Whether the end was reached, with at least as many entries as the service announced, and
        no entry can have been missed."""
        return self.is_over and not self.missing and not self.has_moved

    def pages(self, fetch: Fetch) -> Iterator[Response]:
        """Every page that held something new, and the first in any case. Raises what `fetch`
        raises."""
        is_paged = self.operation.is_paged
        page_size = 0
        if is_paged:
            page_size = int(self.params.get("limit") or PAGE_SIZE)
        before: int | None = None
        while not self.is_over:
            place = {}
            if is_paged:
                place = {"limit": page_size, "page": self.pages_read + 1}
            call = self.operation.bind(**self.params | place)
            response = fetch(call)
            served, new = self._count_page(response)
            self.is_over = not is_paged or self._is_last(served, new, before, page_size)
            before = served
            if new or self.pages_read == 1:
                yield response

    def _count_page(self, response: Response) -> tuple[int, int]:
        """How many entries the page has, and how many of them are new."""
        keys = parsing.item_keys(response)
        new = len(set(keys) - self.keys)
        self.keys.update(keys)
        self.pages_read += 1
        self.rows += new
        if keys or self.service_count is None:  # an empty page past the end counts 0
            self.service_count = parsing.service_count(response)
            total = self.service_count or 0
            if total > len(keys):  # a count above what its page served is one of everything
                self.has_moved |= total < self._total
                self._total = total
        return len(keys), new

    def _is_last(self, served: int, new: int, before: int | None, page_size: int) -> bool:
        """Whether this page is the last one. If the service announces more entries, only a page
        without anything new is."""
        if not new:
            return True
        if self.missing or self.operation.is_grouped:
            return False
        is_unpaged = served > page_size
        return is_unpaged or (before is not None and served < before)
