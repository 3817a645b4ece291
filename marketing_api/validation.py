"""Whether a response is whole and successful, and the right error when it is not: envelope first, HTTP status second.

Not here: what rows it holds (`parsing`), whether to try again (`client`).
"""

from __future__ import annotations

import re
import threading
from collections.abc import Mapping
from typing import Any, NoReturn

import msgspec

from marketing_api.envelope import (
    Envelope,
    Parts,
    decode,
    holds_all,
    is_object,
    part,
    parts,
    parts_or_none,
    read_envelope,
    repeated,
    repeated_within,
    view,
)
from marketing_api.errors import AuthenticationFailed, BrokenResponse, MarketingApiError, NotAvailable, OtherSubject, RateLimited, Refused
from marketing_api.exchange import Body, Response
from marketing_api.operation import Call, Operation
from marketing_api.rate_limit import RateReport, rate_report
from marketing_api.records.values import read_int
from marketing_api.redaction import without_addresses
from marketing_api.write_result import objection

#: api-observed row 1.
BAD_KEY, UNKNOWN_ACTION = 1000, 1002
#: The window of the limit is one second.
_WINDOW = 1.0
#: Client errors by number that another try may cure.
_TRANSIENT_STATUS = (408, 425)


def check(call: Call, status: int, headers: Mapping[str, str], body: Body | memoryview | None) -> None:
    """Return when the response is whole: an `ok` envelope (or a bare payload) with the declared payload in its place.

    Raises RateLimited, AuthenticationFailed, NotAvailable, Refused, BrokenResponse or OtherSubject. No message holds a value that was sent.
    """
    operation = call.operation
    if status == 429:
        _limited(operation, rate_report(body, headers))
    try:
        envelope = read_envelope(body)
    except ValueError:
        _no_envelope(operation, status, _described(view(body)), rate_report(body, headers))
    if (error := _error(envelope, operation)) is not None:
        _refuse(operation, status, error, rate_report(body, headers))
    if envelope.status != "ok" and not _is_bare_payload(envelope, operation):
        _no_verdict(operation, status, rate_report(body, headers))
    if operation.is_read:
        _check_payload(operation, status, envelope)
        _check_echo(call, status, envelope)
    else:
        _check_words(call, status, envelope)


def flaw(response: Response) -> str:
    """Why an archived response is not whole by what is known now; "" when it is."""
    try:
        check(response.call, 200, {}, response.body)
    except MarketingApiError as problem:
        return str(problem)
    return ""


def _limited(operation: Operation, report: RateReport | None) -> NoReturn:
    after = report.after if report and report.after else _WINDOW
    raise RateLimited(f"{operation.name}: over the rate limit", retry_after=after)


def _no_envelope(operation: Operation, status: int, what: str, report: RateReport | None) -> NoReturn:
    if report is not None and report.reached:
        _limited(operation, report)
    if status == 401:
        raise AuthenticationFailed(f"{operation.name}: HTTP 401, the key was not accepted", status=status)
    if 300 <= status < 400:
        what = "a redirect (never followed, the key would go with it; is the address of the service right?)"
    raise BrokenResponse(f"{operation.name}: HTTP {status} with {what} instead of a response", status=status)


def _described(body: bytes | memoryview) -> str:
    start = bytes(body[:200]).lstrip()
    if not start:
        return "no body"
    if start.startswith(b"<"):
        return "HTML or XML"
    return "cut or broken JSON" if start.startswith(b"{") else "something that is no JSON object"


def _no_verdict(operation: Operation, status: int, report: RateReport | None) -> NoReturn:
    """Whole JSON, but neither an envelope nor the payload: only the HTTP status is left to go by."""
    if status == 401 or (report is not None and report.reached) or status < 400 or status >= 500 or status in _TRANSIENT_STATUS:
        _no_envelope(operation, status, "JSON without an envelope", report)
    if status in (404, 405, 410) and operation.name != "app/me":
        raise NotAvailable(f"{operation.name}: HTTP {status}, not available to this account", status=status)
    raise Refused(f"{operation.name}: HTTP {status}; is the address right?", status=status)


def _error(envelope: Envelope, operation: Operation) -> dict[str, Any] | None:
    """The error that a response holds: in an `error` envelope, in `data` in spite of an `ok` header, or without an envelope."""
    members = envelope.members
    if envelope.status == "error" or part(members, "errorCode") is not None:
        return {name: decode(raw) for name, raw in (members or {}).items() if not operation.at or name.lower() != operation.at.lower()}
    return None


def _refuse(operation: Operation, status: int, error: dict[str, Any], report: RateReport | None) -> NoReturn:
    if report is not None and report.reached:
        _limited(operation, report)
    code, text = _code_and_text(error)
    message = f"{operation.name}: {text}"
    told: dict[str, Any] = {"code": code, "status": status, "detail": error}
    if _is_about_the_key(operation, status, code):
        raise AuthenticationFailed(f"{message}: the key is missing, wrong or revoked", **told)
    if code == UNKNOWN_ACTION:
        raise NotAvailable(f"{message}: not available to this account", **told)
    if status >= 500 or status in _TRANSIENT_STATUS:
        raise BrokenResponse(f"{message} (HTTP {status})", status=status)
    raise Refused(message, **told)


def _is_about_the_key(operation: Operation, status: int, code: int | None) -> bool:
    """The envelope goes first: a 401 with a code of its own that does not speak of the key is a refusal like others."""
    if operation.name == "app/me":
        return status == 401 or code in (BAD_KEY, UNKNOWN_ACTION)
    return code == BAD_KEY or (code is None and status == 401)


def _code_and_text(error: Mapping[str, Any]) -> tuple[int | None, str]:
    folded = {name.lower(): value for name, value in error.items()}
    try:
        code: int | None = read_int(folded["errorcode"])
    except (KeyError, ValueError):
        code = None
    number = "without an errorCode" if code is None else f"errorCode {code}"
    said = folded.get("errormessage")
    return code, f"the service refused with {number}" + (f" ({_public(said)})" if isinstance(said, str) and said.strip() else "")


def _public(text: str) -> str:
    """The service's words without what may be personal data: addresses and longer numbers."""
    return re.sub(r"\+?\d[\d\s().-]{5,}\d", "…", without_addresses(text.strip(), "…"))[:200]


def _is_bare_payload(envelope: Envelope, operation: Operation) -> bool:
    """Some samples show the payload without its envelope."""
    if not envelope.bare:
        return False
    names = (operation.at,) if operation.at else (operation.members or operation.result)
    return any(part(envelope.top, name) is not None for name in names)


def _check_words(call: Call, status: int, envelope: Envelope) -> None:
    """A write that is `ok` by its header may be refused by its words (api-observed rows 3 and 5)."""
    told = {name: decode(raw) for name, raw in (envelope.members or {}).items()}
    said = objection(call.operation, call.params, told)
    if said is not None:
        text = f"the service answered ok, but said: {_public(said)}"
        raise Refused(f"{call.operation.name}: {text}", status=status, detail=told)


def _check_payload(operation: Operation, status: int, envelope: Envelope) -> None:
    """What is missing is never taken for empty: `[]` and {} in the payload's place are an empty response, no place is none.

    Of what fills tables, neither are null, an empty text or a number. Two members of one name are two responses, of which one is not ours.
    """
    is_suspect = bool(operation.records) and (operation.is_streamed or not holds_all(envelope.text))
    if is_suspect and (twice := envelope.repeated or ("" if operation.at else _repeated_beside(envelope.members))):
        raise BrokenResponse(f"{operation.name}: the response has `{twice}` more than once", status=status)
    for name in (operation.at,) if operation.at else operation.members:
        if (raw := part(envelope.members, name)) is None:
            raise BrokenResponse(f"{operation.name}: the response lacks `{name}`", status=status)
        _check_member(operation, status, name, raw, is_suspect=is_suspect)


def _check_echo(call: Call, status: int, envelope: Envelope) -> None:
    """A response that names another id than was requested may put one person's story under another's name."""
    name = call.operation.echo
    try:
        named = read_int(decode(raw)) if name and (raw := part(envelope.members, name)) is not None else None
    except ValueError:
        return  # it does not say which it is
    if named is not None and named != read_int(call.params[name]):
        text = f"the response is to another call (its `{name}` is not the one requested)"
        raise OtherSubject(f"{call.operation.name}: {text}", named=named, status=status)


def _check_member(operation: Operation, status: int, name: str, raw: msgspec.Raw, *, is_suspect: bool) -> None:
    inner = parts_or_none(raw) if is_object(raw) else _only_object(raw)
    if part(inner, "errorCode") is not None:  # api-observed row 3
        error = {key: decode(value) for key, value in (inner or {}).items()}
        code, text = _code_and_text(error)
        raise Refused(f"{operation.name}: {text}", code=code, status=status, detail=error)
    if is_object(raw):
        wanted = "items" if operation.is_listing else "" if operation.at else "data"
        if wanted and _is_hollow(inner or {}, wanted, is_strict=bool(operation.records)):
            raise BrokenResponse(f"{operation.name}: `{name}` lacks `{wanted}`", status=status)
    elif _kind(raw) != "[" and (operation.at or operation.records):
        _check_scalar(operation, status, name, decode(raw))
    if is_suspect and (twice := _repeated_entry(raw, inner or {}) if operation.is_streamed else repeated_within(raw)):
        raise BrokenResponse(f"{operation.name}: `{name}` has `{twice}` more than once", status=status)


def _repeated_entry(raw: msgspec.Raw, inner: Parts) -> str:
    """A member that a wrapper has twice, or its entries when they are keyed; the entries themselves stand alone."""
    entries = part(inner, "items")
    return repeated(raw, inner) or (repeated(entries, parts(entries)) if entries is not None and is_object(entries) else "")


def _repeated_beside(members: Parts | None) -> str:
    """The same of a response whose members are collections side by side, also those that it need not have."""
    return next((twice for raw in (members or {}).values() if (twice := repeated_within(raw))), "")


def _kind(raw: msgspec.Raw) -> str:
    """The first letter: `{`, `[`, `"`, `n` of null, or of a number or truth value."""
    return bytes(memoryview(raw)[:1]).decode("ascii", "replace")


def _only_object(raw: msgspec.Raw) -> Parts | None:
    """The object of a list of one, where a look-up may hide its error; a long list is not looked into."""
    text = memoryview(raw)
    if len(text) > 2000 or bytes(text[:1]) != b"[":
        return None
    found = decode(raw)
    return parts(msgspec.json.encode(found[0])) if len(found) == 1 and isinstance(found[0], dict) else None


def _is_hollow(wrapper: Parts, entries: str, *, is_strict: bool) -> bool:
    """True when a wrapper says that there is something and does not hold it. Empty wrappers are just empty; `is_strict`: what is held is a
    collection, or null beside a count of 0.
    """
    held = part(wrapper, entries)
    if not wrapper or (held is not None and (not is_strict or _kind(held) in "[{")):
        return False
    count = part(wrapper, "count")
    return (held is not None and _kind(held) != "n") or count is None or decode(count) not in (0, "0")


def _check_scalar(operation: Operation, status: int, name: str, value: Any) -> None:
    """Words in the payload's place are a refusal (api-observed row 5); anything else there is no response."""
    if isinstance(value, str) and value.strip():
        raise Refused(f"{operation.name}: the service answered in words ({_public(value)})", status=status, detail={name: value})
    if not operation.records and (value is None or value == ""):
        return
    raise BrokenResponse(f"{operation.name}: `{name}` is no object or list", status=status)


#: After so many confirmations, and no mix-up, this is taken for how the service tells ids.
_CONVINCED = 3


class Aliases:
    """What one account's responses named instead of what was requested. Thread-safe.

    A contact of several lists may be named by another of its ids: then the same other id comes each time, which a mix-up does not.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._named: dict[str, int] = {}
        self._confirmed = 0
        self._mixed_up = 0

    def confirm(self, call: Call, named: int) -> bool:
        """Whether the response may be believed: the one before to the same call named this id, too."""
        with self._lock:
            before = self._named.pop(call.key, None)
            if before == named:
                self._confirmed += 1
                return True
            if before is not None:
                self._mixed_up += 1
            if self._confirmed >= _CONVINCED and not self._mixed_up:
                return True
            self._named[call.key] = named
            return False
