"""Whether a response is whole and successful, and the right error when it is not: envelope first,
HTTP status second.

Not here: what rows it holds (`parsing`), whether to try again (`client`).
"""

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from marketing_api.address import mask_addresses
from marketing_api.envelope import (
    Envelope,
    Parts,
    decode,
    decode_members,
    find_member,
    first_letter,
    split_collection,
    split_if_object,
)
from marketing_api.errors import (
    AuthenticationFailed,
    BrokenResponse,
    MarketingApiError,
    NotAvailable,
    OtherSubject,
    RateLimited,
    Refused,
    ServiceError,
)
from marketing_api.exchange import Response
from marketing_api.operation import Call, Operation
from marketing_api.rate_limit import read_rate_report
from marketing_api.records.values import read_int, read_or_none
from marketing_api.write_result import find_objection

#: observation 1.
BAD_KEY = 1000
UNKNOWN_ACTION = 1002
#: The window of the limit is one second.
_WINDOW = 1.0
#: Client errors by number that another try may cure.
_TRANSIENT_STATUS = (408, 425)


def check_response(call: Call, status: int, headers: Mapping[str, str], envelope: Envelope) -> None:
    """Return if the response is whole: an `ok` envelope (or a bare payload) with the declared
    payload in its place.

    Raises RateLimited, AuthenticationFailed, NotAvailable, Refused, BrokenResponse or OtherSubject.
    No message holds a value that was sent."""
    operation = call.operation
    error = _find_error(envelope, operation)
    is_success = error is None and (
        envelope.status == "ok" or _is_bare_payload(envelope, operation)
    )
    if status == 429 or not is_success:
        report = read_rate_report(envelope, headers)
        if status == 429 or report.reached:
            wait = report.after or _WINDOW
            raise RateLimited(f"{operation.name}: over the rate limit", retry_after=wait)
        if error is None:
            raise _make_status_error(operation, status, envelope.flaw)
        raise _make_refusal(operation, status, error)
    if operation.is_read:
        _check_payload(operation, envelope)
        _check_echo(call, envelope)
        return
    members = decode_members(envelope.members)
    # observations 3 and 5
    words = find_objection(operation, call.params, members)
    if words is not None:
        raise Refused(
            f"{operation.name}: the service answered ok, but said: {_mask_words(words)}",
            detail=members,
        )


def make_operation_refusal(operation: Operation, error: AuthenticationFailed) -> ServiceError:
    """If `app/me` accepts a key, a refusal of that key is a refusal of the operation (observation
    41), even if the message blames the key."""
    if operation.name == "app/me":
        return error
    what = "HTTP 401" if error.code is None else f"errorCode {error.code}"
    refused = (
        f"the service refused with {what}, though it accepts the key: not available to this account"
    )
    return NotAvailable(f"{operation.name}: {refused}", code=error.code, detail=error.detail)


def find_flaw(response: Response) -> str:
    """Why an archived response is not whole by today's rules; "" if it is. A response that the
    client has just opened is already checked."""
    if response.opened is not None:
        return ""
    try:
        check_response(response.call, 200, {}, response.envelope)
    except (MarketingApiError, ValueError) as error:
        return str(error)
    return ""


def _make_status_error(operation: Operation, status: int, flaw: str) -> MarketingApiError:
    """The error for JSON without an envelope, or for a body that is no JSON (`flaw`)."""
    name = operation.name
    if status == 401:
        return AuthenticationFailed(f"{name}: HTTP 401, the key was not accepted")
    if not flaw and 400 <= status < 500 and status not in _TRANSIENT_STATUS:
        if status in (404, 405, 410) and name != "app/me":
            return NotAvailable(f"{name}: HTTP {status}, not available to this account")
        return Refused(f"{name}: HTTP {status}; is the address right?")
    what = flaw or "JSON without an envelope"
    if 300 <= status < 400:
        what = (
            "a redirect (not followed, because the key would go with it; is the address of the "
            "service right?)"
        )
    return BrokenResponse(f"{name}: HTTP {status} with {what} instead of a response")


def _find_error(envelope: Envelope, operation: Operation) -> dict[str, Any] | None:
    """The error that a response holds: in an `error` envelope, in `data` in spite of an `ok`
    header, or without an envelope."""
    if envelope.status != "error" and find_member(envelope.members, "errorCode") is None:
        return None
    payload = operation.at.lower()
    members = dict(envelope.members or {})
    for name in list(members):
        if payload and name.lower() == payload:
            del members[name]
    return decode_members(members)


def _make_refusal(operation: Operation, status: int, error: dict[str, Any]) -> MarketingApiError:
    code, text = _read_code_and_text(error)
    message = f"{operation.name}: {text}"
    facts: dict[str, Any] = {"code": code, "detail": error}
    if operation.name == "app/me":
        is_about_the_key = status == 401 or code in (BAD_KEY, UNKNOWN_ACTION)
    else:  # the envelope's code counts first: a 401 with another code is a usual refusal
        is_about_the_key = code == BAD_KEY or (code is None and status == 401)
    if is_about_the_key:
        return AuthenticationFailed(f"{message}: the key is missing, wrong or revoked", **facts)
    if code == UNKNOWN_ACTION:
        return NotAvailable(f"{message}: not available to this account", **facts)
    if status >= 500 or status in _TRANSIENT_STATUS:
        return BrokenResponse(f"{message} (HTTP {status})")
    return Refused(message, **facts)


def _read_code_and_text(error: Mapping[str, Any]) -> tuple[int | None, str]:
    folded = {name.lower(): value for name, value in error.items()}
    code = read_or_none(read_int, folded.get("errorcode"))
    number = "without an errorCode" if code is None else f"with errorCode {code}"
    words = folded.get("errormessage")
    said = ""
    if isinstance(words, str) and words.strip():
        said = f" ({_mask_words(words)})"
    return code, f"the service refused {number}{said}"


def _mask_words(text: str) -> str:
    """The service's words without what may be personal data: addresses and longer numbers."""
    masked = mask_addresses(text.strip(), "…")
    return re.sub(r"\+?\d[\d\s().-]{5,}\d", "…", masked)[:200]


def _is_bare_payload(envelope: Envelope, operation: Operation) -> bool:
    """Some samples show the payload without its envelope."""
    names = (operation.at,) if operation.at else operation.members or operation.result
    return envelope.is_bare and any(find_member(envelope.top, name) is not None for name in names)


def _check_payload(operation: Operation, envelope: Envelope) -> None:
    """A missing payload is never taken for an empty one: `[]` or {} as payload is an empty
    response, and a response without the payload's name is broken.

    If the operation fills tables, a payload of null, an empty text or a number is broken, too. Two
    members of one name are two responses, and one of them is not ours."""
    if operation.records:
        repeated = envelope.find_repeated(operation)
        if repeated:
            raise BrokenResponse(f"{operation.name}: the response has `{repeated}` more than once")
    names = (operation.at,) if operation.at else operation.members
    for name in names:
        raw = find_member(envelope.members, name)
        if raw is None:
            raise BrokenResponse(f"{operation.name}: the response lacks `{name}`")
        _check_member(operation, envelope, name, raw)


def _check_echo(call: Call, envelope: Envelope) -> None:
    """A response that names another id than was requested may put one person's story under
    another's name."""
    name = call.operation.echo
    raw = find_member(envelope.members, name)
    if not name or raw is None:
        return
    named = read_or_none(read_int, decode(raw))
    requested = read_or_none(read_int, call.params[name])
    if named is not None and named != requested:
        text = f"the response is to another call (its `{name}` is not the one requested)"
        raise OtherSubject(f"{call.operation.name}: {text}", named=named)


def _check_member(operation: Operation, envelope: Envelope, name: str, raw: msgspec.Raw) -> None:
    kind = first_letter(raw)
    inner = envelope.open_member(name)
    # A look-up may hide its error in a list of one. A long list is not such an error.
    if kind == b"[" and len(memoryview(raw)) <= 2000:
        entries = split_collection(raw)
        if len(entries) == 1:
            inner = split_if_object(entries[0])
    if find_member(inner, "errorCode") is not None:  # observation 3
        error = decode_members(inner)
        code, text = _read_code_and_text(error)
        raise Refused(f"{operation.name}: {text}", code=code, detail=error)
    if kind == b"{":
        _check_wrapper(operation, name, inner or {})
    elif kind != b"[":
        _check_value(operation, name, decode(raw))


def _check_wrapper(operation: Operation, name: str, wrapper: Parts) -> None:
    if operation.is_listing:
        entries = "items"
    elif not operation.at:
        entries = "data"
    else:
        return
    if _is_hollow(wrapper, entries, is_strict=bool(operation.records)):
        raise BrokenResponse(f"{operation.name}: `{name}` lacks `{entries}`")


def _check_value(operation: Operation, name: str, value: Any) -> None:
    """The payload is a single value."""
    if not operation.at and not operation.records:
        return
    if isinstance(value, str) and value.strip():  # words in its place are a refusal (observation 5)
        text = f"{operation.name}: the service answered in words ({_mask_words(value)})"
        raise Refused(text, detail={name: value})
    if operation.records or value not in (None, ""):
        raise BrokenResponse(f"{operation.name}: `{name}` is not an object or a list")


def _is_hollow(wrapper: Parts, entries: str, *, is_strict: bool) -> bool:
    """Whether a wrapper says that there are entries and does not hold them. An empty wrapper is
    just empty. `is_strict`: entries must be a collection, or null beside a count of 0."""
    if not wrapper:
        return False
    content = find_member(wrapper, entries)
    letter = b"n" if content is None else first_letter(content)
    if letter in b"[{" or (content is not None and not is_strict):
        return False
    count = find_member(wrapper, "count")
    return letter != b"n" or count is None or decode(count) not in (0, "0")
