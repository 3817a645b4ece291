"""What the response to a write says: which id it made, and whether its words mean that nothing happened.

The service responds `ok` to writes without effect and says so in a sentence of free text (api-observed rows 5 and 7), or with an
error inside the payload (row 3). Belongs here: telling such a response from a good one. Not here: envelopes and error codes
(`validation`), whether to send again (`client`).
"""

import html
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from marketing_api.envelope import decode, read_envelope
from marketing_api.exchange import Response
from marketing_api.operation import Operation


@dataclass(frozen=True, slots=True)
class WriteResult:
    """`new_id`: of the thing that was added or synced, where the service names one; `item`: its sentence."""

    new_id: int | None
    item: str = field(default="", repr=False)  # may name a person


def parse_write_result(response: Response) -> WriteResult:
    """Never raises: a missing id or sentence says nothing about the effect."""
    members = read_envelope(response.body).members or {}
    values = {name.lower(): decode(raw) for name, raw in members.items()}
    new_id = values.get("id") or values.get("post_id")
    text = str(new_id).strip()
    is_number = text.isascii() and text.isdecimal() and not isinstance(new_id, bool)
    return WriteResult(int(text) if is_number else None, _words(values.get("item")))


def objection(operation: Operation, sent: Mapping[str, str], members: Mapping[str, Any]) -> str | None:
    """The words in which an `ok` response (`members`: those of `data`) says that the write did not happen, or None.

    What was `sent` is taken out of the sentence first: a tag named "not found" is no refusal.
    """
    nested = next(_nested_errors(members), None)
    if nested is not None:
        return nested
    for name, value in members.items():
        if name.lower() in ("item", "message", "error", "errormessage", "result") and (words := _words(value)):
            is_error = name.lower().startswith("error")
            if is_error or denies(operation, words, sent.values()):
                return words
    return None


#: Writes whose content is all there is to them: told that it is there already, all is as intended.
_SETTLED_BY_BEING_THERE = ("movecontact", "deletecontact", "addtag", "removetag", "addactivity")
#: These may be told the same when there was nothing to change, but also when a contact was there and its values were not taken in.
_UPDATES = ("synccontact", "editcontact")


def denies(operation: Operation, sentence: str, sent: Iterable[str] = ()) -> bool:
    """Whether the sentence says that what the operation was to bring about is not so."""
    text = _HARMLESS.sub(" ", _plain(sentence, sent))
    name = operation.name.partition("/")[2]
    if name == "removetag" and _WITHOUT_TAG.search(text):
        return False
    if _ALREADY.search(text) and name in _SETTLED_BY_BEING_THERE + _UPDATES:
        pattern = _NEGATIVE if name in _UPDATES else _CANNOT_BE
        return bool(pattern.search(_ALREADY.sub(" ", text)))
    return bool(_ALREADY_THERE.search(text) or _NEGATIVE.search(text))


def says_absent(text: str) -> bool:
    """Whether words of the service mean that what was named is not there (any more)."""
    return bool(_ABSENT.search(_plain(text, ())))


def _words(value: Any) -> str:
    """The sentence, also in a list of one or several, or inside an object."""
    if isinstance(value, str):
        return value.strip()
    if isinstance(value, Mapping):
        return _words(list(value.values()))
    return ". ".join(filter(None, map(_words, value))) if isinstance(value, list) else ""


def _plain(sentence: str, sent: Iterable[str]) -> str:
    """Lower case, blanks and apostrophes made alike, without what we sent and without what stands in quotes."""
    text = _alike(sentence)
    for value in sorted({_alike(str(each)) for each in sent}, key=len, reverse=True):
        if len(value) > 2:
            text = re.sub(rf"(?<!\w){re.escape(value)}(?!\w)", " … ", text)
    return re.sub(r'"[^"]*"|(?<!\w)\'[^\']*\'(?!\w)', " … ", text)


def _alike(text: str) -> str:
    text = re.sub(r"<[^<>]*>", " ", unescaped(text if len(text) <= _LONGEST else text[: _LONGEST // 2] + " … " + text[-_LONGEST // 2 :]))
    return " ".join(text.translate(_QUOTES).lower().split())


def unescaped(text: str) -> str:
    """HTML's entities resolved; as it came where one stands for no letter, by a number too long for Python."""
    try:
        return html.unescape(text)
    except ValueError:
        return text


#: Letters of a sentence that are looked at: its begin and its end, between which it may repeat what was sent.
_LONGEST = 20_000

_QUOTES = str.maketrans({"’": "'", "‘": "'", "`": "'", "´": "'", "“": '"', "”": '"', "„": '"', "«": '"', "»": '"'})

#: No complaint although it sounds like one: taken out before the rest is looked at.
_HARMLESS = re.compile(
    r"\b(?:no|without|zero|0)(?: any)? (?:errors?|problems?|failures?|issues?|warnings?|further action)\b"
    r"|\b(?:errors?|failed|failures?|skipped|invalid)\s*[:=]\s*(?:0|none|no|false|null)\b"
    r"|\bplease (?:do not|don't) [^.!;]*"
    r"|\b(?:may|might|will) not (?:be (?:visible|shown)|show|appear)\b[^.!;]*"
    r"|\bnot (?:yet|immediately|only)\b"
)
#: All is as intended, whoever did it.
_ALREADY_THERE = re.compile(r"\balready\b|\bduplicated?\b")
_ALREADY = re.compile(
    _ALREADY_THERE.pattern + r"|\bunchanged\b|\b(?:(?:was|is|were|has|have) )?not (?:been )?changed\b|\bno changes?\b"
    r"|\bnothing to (?:do|update|change)\b|\bup[ -]to[ -]date\b"
)
_WITHOUT_TAG = re.compile(
    r"\btags?\b[^.]{0,25}(?:\bnot\b|n't\b)[^.]{0,12}\b(?:found|exist|assigned|set|attached|there|present)\b"
    r"|\b(?:does|do|did)(?:n't| not) (?:have|carry) (?=(?:this|that|the|it|any|such)\b|…)|\bno such tag\b|\bnot tagged\b|n't tagged\b"
)
_NOT = r"(?:is|are|was|were|do|does|did|has|have|had|can|could)(?:n't| not)"
_ABSENT = re.compile(
    rf"\b{_NOT} (?:been |be |currently )?(?:exist|found|find|there|in (?:this|the|that|source)|on (?:this|the|that)|a member|member"
    r"|subscribed|belong|available|present|known)\b"
    r"|\bno longer\b|\bnot (?:be )?(?:found|exist|existing|there|present|known|(?:in|on) (?:the|this|that)|a member|a contact)\b"
    r"|\bno (?:such|contacts?|matching|match|records?|entry|entries|subscribers?|one|results?|tags?|lists?|person)\b|\bnobody\b"
    r"|\bunknown\b|\bcan(?:not|'t) find\b|\bnon-?existent\b|\bmissing\b"
)
_CANNOT_BE = re.compile(_ABSENT.pattern + r"|\binvalid\b|\bnot valid\b|\bdenied\b|\bforbidden\b|\bfor (?:another|other) (?:contact|list)")
_NEGATIVE = re.compile(
    _CANNOT_BE.pattern + rf"|\b{_NOT}\b|\b(?:would|should|must|may|will)(?:n't| not)\b|\bcannot\b|\bcan't\b|\bwon't\b"
    r"|\bnot (?:a |an )?(?:allowed|permitted|possible|supported|accepted|authori[sz]ed|added|applied|removed|updated|saved|moved|deleted"
    r"|created|synced|processed|enough|available|enabled|successful|done)\b"
    r"|\b(?:in|un)(?:valid|successful|able|authori[sz]ed|supported|available|recogni[sz]ed|expected|correct|sufficient)\b"
    r"|\b(?:fail(?:ed|s|ure|ures)?|errors?|refused|rejected|blocked|blacklisted|suppressed|ignored|skipped|aborted|expired"
    r"|exceed(?:s|ed|ing)?|disallowed|prohibited|malformed|impossible|wrong|required|nothing|none|problem)\b"
    r"|\b(?:please|must) (?:try|provide|specify|enter|check|supply|be|have|contain)\b"
    r"|\b(?:too|over) (?:long|many|large|big|short|few|limit)\b|\blimit (?:is |was |has been )?reached\b|\btry again\b|\bonly active\b"
    r"|(?<!\d)0 (?:contacts?|rows?|records?|tags?|items?|activit(?:y|ies))\b|\bsorry\b|\boops\b"
)


def _nested_errors(value: Any, depth: int = 0) -> Iterator[str]:
    """Errors anywhere inside the payload: an `errorCode`, a list of `errors`, a member that says `success: false` or `status: error`."""
    if depth > 4:
        return
    if isinstance(value, list):
        for each in value:
            yield from _nested_errors(each, depth + 1)
    if not isinstance(value, Mapping):
        return
    folded = {str(name).lower().replace("_", ""): inner for name, inner in value.items()}
    code = str(folded.get("errorcode") or "").strip()
    is_error = code not in ("", "0") or folded.get("errors") or folded.get("errormessage")
    is_failure = str(folded.get("success", "")).strip().lower() in ("false", "0", "no")
    if is_error or is_failure or str(folded.get("status", "")).strip().lower() in ("error", "failed", "failure", "fail"):
        words = _words(folded.get("errormessage") or folded.get("message") or folded.get("item") or folded.get("errors"))
        yield words or "an error without words"
    for inner in value.values():
        yield from _nested_errors(inner, depth + 1)
