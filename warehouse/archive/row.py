"""The archive's row, declared once. The Parquet columns, their documentation and the ledger's
columns follow from `Row`.

Belongs here: from an Exchange to a row, from a row to a Response. Not here: where rows are
stored."""

import datetime as dt
import functools
import hashlib
import json
import mmap
from dataclasses import dataclass
from typing import Annotated, Self

import msgspec

from marketing_api.envelope import Body, Envelope, read_envelope
from marketing_api.errors import InvalidCall
from marketing_api.exchange import Exchange, Outcome, Response
from marketing_api.operation import Call, Effect, Operation
from marketing_api.operations import find


def _column_doc(text: str, **extra: bool) -> msgspec.Meta:
    """`extra`: whether a column `is_personal` and whether it `is_internal` (`warehouse.tables`)."""
    return msgspec.Meta(description=text, extra=extra)


#: Raised if an older program could no longer read the ledger or sealed files.
ARCHIVE_VERSION = 1

#: `body_ref` of a row whose body was dropped.
DROPPED = -1


class Row(msgspec.Struct, frozen=True, array_like=True):
    """One request, without its body."""

    request_id: Annotated[int, _column_doc("The request. Later requests have larger ids.")]
    account: Annotated[str, _column_doc("Name of the account in the configuration.")]
    operation: Annotated[str, _column_doc("area/operation, as in its path.")]
    # Hashes without a key aren't published either: anyone who knows an address could find out that
    # it was requested.
    question_key: Annotated[
        str,
        _column_doc("Hash of operation and parameters.", is_internal=True),
    ]
    params: Annotated[  # they name people, as may the service's words about an error
        str,
        _column_doc(
            "Parameters of the request as a JSON object, without the key; secrets are ***.",
            is_personal=True,
        ),
    ]
    requested_at: Annotated[dt.datetime, _column_doc("When it was sent, UTC.")]
    waited_ms: Annotated[int, _column_doc("Milliseconds of waiting for the rate limit.")]
    took_ms: Annotated[int, _column_doc("Milliseconds from sending to the last byte.")]
    http_status: Annotated[int | None, _column_doc("HTTP status; NULL without a response.")]
    outcome: Annotated[str, _column_doc("ok, refused, rate_limited, broken or unreachable.")]
    error: Annotated[str | None, _column_doc("What went wrong; NULL for ok.", is_personal=True)]
    bytes: Annotated[
        int, _column_doc("Size of the body as received; 0 without a body or if it has a secret.")
    ]
    body_sha256: Annotated[str, _column_doc("SHA-256 of the body as received.", is_internal=True)]
    content_sha256: Annotated[
        str,
        _column_doc(
            "SHA-256 of the payload (response.data), or of the body if there is none.",
            is_internal=True,
        ),
    ]
    body_file: Annotated[
        str | None,
        _column_doc(
            "File of a large body in the archive's folder; NULL for others.",
            is_internal=True,
        ),
    ]
    body_ref: Annotated[
        int | None,
        _column_doc(
            "Earlier response with the same body; NULL if this row has it, -1 if it was deleted.",
            is_internal=True,
        ),
    ]

    @property
    def is_whole(self) -> bool:
        """Whether this is a response that may be used instead of a request (the body of a secret is
        empty, so it never is)."""
        return self.outcome == Outcome.OK and self.bytes > 0


@dataclass(frozen=True, slots=True)
class Digests:
    """Size and hashes of a body: of all of it, and of its content."""

    size: int
    body: str
    content: str

    @classmethod
    def of_body(cls, body: bytes | mmap.mmap, opened: Envelope | None = None) -> Self:
        """Nothing is copied, and other threads run while it hashes. `opened`: the body's envelope,
        if at hand. Everything except `data` differs in every response, since it holds the rate
        limit (observation 27)."""
        whole = hashlib.sha256(body).hexdigest()
        data = (opened or read_envelope(memoryview(body))).data
        return cls(len(body), whole, whole if data is None else hashlib.sha256(data).hexdigest())


def row_of(exchange: Exchange, digests: Digests, body_file: str | None) -> Row:
    """The exchange as a row. Secrets are masked in the parameters, so that neither the parameters
    nor their hash reveal one."""
    call = exchange.call
    params = call.public_params
    return Row(
        request_id=exchange.request_id,
        account=exchange.account,
        operation=call.operation.name,
        question_key=call.key if params == call.params else Call(call.operation, params).key,
        params=json.dumps(params, ensure_ascii=False),
        requested_at=exchange.requested_at.astimezone(dt.UTC),
        waited_ms=exchange.waited_ms,
        took_ms=exchange.took_ms,
        http_status=exchange.http_status,
        outcome=str(exchange.outcome),
        error=exchange.error,
        bytes=digests.size,
        body_sha256=digests.body,
        content_sha256=digests.content,
        body_file=body_file,
        body_ref=None,
    )


def response_of(row: Row, body: Body) -> Response:
    """The row as the response to its call."""
    call = Call(operation_of(row.operation), msgspec.json.decode(row.params, type=dict[str, str]))
    return Response(row.request_id, row.account, call, row.requested_at, body)


@functools.lru_cache(maxsize=256)
def operation_of(name: str) -> Operation:
    try:
        return find(name)
    except InvalidCall:
        # The operation is of another version: its responses yield no records here, and must not
        # keep others from being read.
        return Operation(name, "GET", Effect.READ, "Not known to this version.")
