"""What the response to a write says: which id it made, and whether its words mean that nothing
happened.

The service responds `ok` to writes without effect and says so in a sentence of free text
(observations 5 and 7), or with an error inside the payload (row 3). Belongs here: telling such a
response from a good one; its phrases are in `write_result.toml`. Not here: envelopes and error
codes (`validation`), whether to send again (`client`)."""

import html
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from marketing_api.envelope import decode_members
from marketing_api.exchange import Response
from marketing_api.operation import Operation
from marketing_api.records.values import read_int, read_or_none

_IDS = {"id", "post_id"}


def new_id(response: Response) -> int | None:
    """The id of what was added or synced; None where the service names none, which says nothing
    about the effect."""
    values = {
        name.lower(): value for name, value in decode_members(response.envelope.members).items()
    }
    named = values.get("id") or values.get("post_id")
    text = str(named).strip()
    return (
        int(text) or None
        if text.isascii() and text.isdecimal() and not isinstance(named, bool)
        else None
    )


def find_objection(
    operation: Operation, sent: Mapping[str, str], members: Mapping[str, Any]
) -> str | None:
    """The words in which an `ok` response (`members`: those of `data`) says that the write did not
    happen, or None.

    An id that is 0 says so, too. What was `sent` is taken out of the sentence first: a tag named
    "not found" is no refusal."""
    nested = next(_list_nested_errors(members), None)
    if nested is not None:
        return nested
    for name, value in members.items():
        if name.lower() in ("item", "message", "error", "errormessage", "result") and (
            words := collect_words(value)
        ):
            is_error = name.lower().startswith("error")
            if is_error or is_denial(operation, words, sent.values()):
                return words
    named = (
        value
        for name, value in members.items()
        if name.lower() in _IDS.intersection(operation.result)
    )
    is_nothing_made = any(read_or_none(read_int, value) == 0 for value in named)  # observation 45
    return "id 0: nothing was made" if is_nothing_made else None


#: Writes that are complete when the service answers that their content exists already.
_SETTLED_BY_BEING_THERE = ("movecontact", "deletecontact", "addtag", "removetag", "addactivity")
#: These get the same answer when nothing had to change, but also when a contact existed and its
#: values were not stored.
_UPDATES = ("synccontact", "editcontact")


def is_denial(operation: Operation, sentence: str, sent: Iterable[str] = ()) -> bool:
    """Whether the sentence says that what the operation was to bring about is not so."""
    text = _HARMLESS.sub(" ", _simplify_sentence(sentence, sent))
    name = operation.name.partition("/")[2]
    if name == "removetag" and _WITHOUT_TAG.search(text):
        return False
    if _ALREADY.search(text) and name in _SETTLED_BY_BEING_THERE + _UPDATES:
        pattern = _NEGATIVE if name in _UPDATES else _CANNOT_BE
        return bool(pattern.search(_ALREADY.sub(" ", text)))
    return bool(_ALREADY_THERE.search(text) or _NEGATIVE.search(text))


def says_absent(text: str) -> bool:
    """Whether words of the service mean that what was named is not there (any more)."""
    return bool(_ABSENT.search(_simplify_sentence(text, ())))


def collect_words(value: Any) -> str:
    """The sentence, also in a list of one or several, or inside an object."""
    if isinstance(value, str):
        return value.strip()
    if isinstance(value, Mapping):
        return collect_words(list(value.values()))
    return ". ".join(filter(None, map(collect_words, value))) if isinstance(value, list) else ""


def _simplify_sentence(sentence: str, sent: Iterable[str]) -> str:
    """Lower case, blanks and apostrophes made alike, without what we sent and without what is in
    quotes."""
    text = _normalize_text(sentence)
    for value in sorted({_normalize_text(str(value)) for value in sent}, key=len, reverse=True):
        # each is a pattern of its own, which takes long to compile
        if len(value) > 2 and value in text:
            text = re.sub(rf"(?<!\w){re.escape(value)}(?!\w)", " … ", text)
    return re.sub(r'"[^"]*"|(?<!\w)\'[^\']*\'(?!\w)', " … ", text)


def _normalize_text(text: str) -> str:
    if len(text) > _LONGEST:
        text = text[: _LONGEST // 2] + " … " + text[-_LONGEST // 2 :]
    text = re.sub(r"<[^<>]*>", " ", unescape_html(text))
    return " ".join(text.translate(_QUOTES).lower().split())


def unescape_html(text: str) -> str:
    """HTML's entities resolved; as it came where one stands for no letter, by a number too long for
    Python."""
    try:
        return html.unescape(text)
    except ValueError:
        return text


#: Letters of a sentence that are looked at: its begin and its end, between which it may repeat what
#: was sent.
_LONGEST = 20_000

_QUOTES = str.maketrans(
    {"’": "'", "‘": "'", "`": "'", "´": "'", "“": '"', "”": '"', "„": '"', "«": '"', "»": '"'}
)

_PHRASES: dict[str, Any] = tomllib.loads(
    Path(__file__).with_suffix(".toml").read_text(encoding="utf-8")
)


def _any_of(*kinds: str) -> str:
    return "|".join(
        phrase.replace("<not>", _PHRASES["not"]) for kind in kinds for phrase in _PHRASES[kind]
    )


_HARMLESS = re.compile(_any_of("harmless"))
_ALREADY_THERE = re.compile(_any_of("already-there"))
_ALREADY = re.compile(_any_of("already-there", "already-so"))
_WITHOUT_TAG = re.compile(_any_of("without-tag"))
_ABSENT = re.compile(_any_of("absent"))
_CANNOT_BE = re.compile(_any_of("absent", "impossible"))
_NEGATIVE = re.compile(_any_of("absent", "impossible", "negative"))


_FAILED = ("error", "failed", "failure", "fail")


def _find_error_words(members: Mapping[str, Any]) -> str | None:
    """Of an object that says that it is an error; None of another. `members` by name in lower
    case."""
    words = {name: str(members.get(name, "")).strip().lower() for name in ("status", "success")}
    is_failure = words["success"] in ("false", "0", "no") or words["status"] in _FAILED
    is_error = str(members.get("errorcode") or "").strip() not in ("", "0")
    if not (is_failure or is_error or members.get("errors") or members.get("errormessage")):
        return None
    said = filter(None, map(members.get, ("errormessage", "message", "item", "errors")))
    return collect_words(next(said, None)) or "an error without words"


def _list_nested_errors(value: Any, depth: int = 0) -> Iterator[str]:
    """Errors anywhere inside the payload: an `errorCode`, a list of `errors`, a member that says
    `success: false` or `status: error`."""
    if depth > 4:
        return
    if isinstance(value, list):
        for entry in value:
            yield from _list_nested_errors(entry, depth + 1)
    if not isinstance(value, Mapping):
        return
    words = _find_error_words(
        {str(name).lower().replace("_", ""): inner for name, inner in value.items()}
    )
    if words is not None:
        yield words
    for inner in value.values():
        yield from _list_nested_errors(inner, depth + 1)
