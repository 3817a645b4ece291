"""The wire without the wire: what a question looks like on it, and what an answer says. Pure functions of values.

Belongs here: building a request; the reading side is gathered from `rate`, `verdict` and `reading`, so that a client needs one
import. Not here: sending anything (`client`), the key. JSON only: no sample of the service's XML exists (api-observed row 31).
"""

from __future__ import annotations

from dataclasses import dataclass

from marketing_api.operation import Question
from marketing_api.rate import RateReport, rate_report
from marketing_api.reading import Rejected, Rows, item_count, item_keys, read_rows, service_count, shortage, timeline_extent
from marketing_api.verdict import check, flaw

__all__ = [
    "Prepared",
    "RateReport",
    "Rejected",
    "Rows",
    "check",
    "flaw",
    "item_count",
    "item_keys",
    "prepare",
    "rate_report",
    "read_rows",
    "service_count",
    "shortage",
    "timeline_extent",
]


@dataclass(frozen=True, slots=True)
class Prepared:
    """A request without the key, which the client adds as query parameter `key`. The repr shows no values."""

    method: str
    url: str
    query: list[tuple[str, str]]
    form: list[tuple[str, str]]

    def __repr__(self) -> str:
        return f"Prepared({self.method} {self.url}: {', '.join(name for name, _ in self.query + self.form)})"


def prepare(question: Question, base_url: str) -> Prepared:
    """`base_url` up to and including `/1`. Parameters of a GET go into the query, those of a POST into the form body."""
    operation = question.operation
    params = list(question.params.items())
    url = base_url.rstrip("/") + operation.path
    if operation.method == "GET":
        return Prepared(operation.method, url, params, [])
    return Prepared(operation.method, url, [], params)
