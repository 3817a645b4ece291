"""What the response to a write says: which id was created, and whether its words mean that nothing
happened.

The service responds `ok` even if a write had no effect, and says so in a sentence of free text
(observations 5 and 7), or in an error inside the payload (observation 3). Belongs here: telling
such a response from a good one; its phrases are in `write_result.toml`. Not here: envelopes and
error codes (`validation`), whether to send again (`client`)."""

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
    """The id of what was added or synced. None if the response names none; the write may have had
    an effect nevertheless."""
    members = decode_members(response.envelope.members)
    folded = {name.lower(): value for name, value in members.items()}
    named = folded.get("id") or folded.get("post_id")
    text = str(named).strip()
    if text.isascii() and text.isdecimal():
        return int(text) or None
    return None


def find_objection(
    operation: Operation, sent: Mapping[str, str], members: Mapping[str, Any]
) -> str | None:
    """The words in which an `ok` response (`members`: those of `data`) says that the write did not
    happen, or None.

    An id of 0 means the same. The values that were `sent` are removed from the sentence first: a
    tag named "not found" is no refusal."""
    nested = next(_list_nested_errors(members), None)
    if nested is not None:
        return nested
    for name, value in members.items():
        folded_name = name.lower()
        if folded_name not in _SENTENCES:
            continue
        words = collect_words(value)
        if not words:
            continue
        is_error = folded_name.startswith("error")
        if is_error or is_denial(operation, words, sent.values()):
            return words
    id_names = _IDS.intersection(operation.result)
    for name, value in members.items():
        if name.lower() not in id_names:
            continue
        created_id = read_or_none(read_int, value)
        if created_id == 0:  # observation 45
            return "id 0: nothing was made"
    return None


#: Members that may hold a sentence.
_SENTENCES = ("item", "message", "error", "errormessage", "result")


#: Writes that are complete when the service answers that their content exists already.
_SETTLED_BY_BEING_THERE = ("movecontact", "deletecontact", "addtag", "removetag", "addactivity")
#: These get the same answer when nothing had to change, but also when a contact existed and its
#: values were not stored.
_UPDATES = ("synccontact", "editcontact")


def is_denial(operation: Operation, sentence: str, sent: Iterable[str] = ()) -> bool:
    """Whether the sentence says that the operation did not achieve its purpose."""
    simplified = _simplify_sentence(sentence, sent)
    text = _HARMLESS.sub(" ", simplified)
    name = operation.name.partition("/")[2]
    if name == "removetag" and _WITHOUT_TAG.search(text):
        return False
    if _ALREADY.search(text):
        rest = _ALREADY.sub(" ", text)
        if name in _UPDATES:
            return bool(_NEGATIVE.search(rest))
        if name in _SETTLED_BY_BEING_THERE:
            return bool(_CANNOT_BE.search(rest))
    return bool(_ALREADY_THERE.search(text) or _NEGATIVE.search(text))


def says_absent(text: str) -> bool:
    """Whether words of the service mean that the named thing does not exist (any more)."""
    return bool(_ABSENT.search(_simplify_sentence(text, ())))


def collect_words(value: Any) -> str:
    """The sentence; the value may be a list of sentences, or an object with one."""
    if isinstance(value, str):
        return value.strip()
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, list):
        sentences = map(collect_words, value)
        return ". ".join(filter(None, sentences))
    return ""


def _simplify_sentence(sentence: str, sent: Iterable[str]) -> str:
    """Lower case, with blanks and quotes unified, without the values that we sent, and without
    quoted text."""
    text = _normalize_text(sentence)
    values = {_normalize_text(str(value)) for value in sent}
    for value in sorted(values, key=len, reverse=True):
        # A pattern takes long to compile, so only values that occur get one.
        if len(value) > 2 and value in text:
            text = re.sub(rf"(?<!\w){re.escape(value)}(?!\w)", " … ", text)
    return _QUOTED.sub(" … ", text)


def _normalize_text(text: str) -> str:
    if len(text) > _LONGEST:
        beginning = text[: _LONGEST // 2]
        end = text[-_LONGEST // 2 :]
        text = f"{beginning} … {end}"
    unescaped = unescape_html(text)
    without_tags = re.sub(r"<[^<>]*>", " ", unescaped)
    words = without_tags.translate(_QUOTES).lower().split()
    return " ".join(words)


def unescape_html(text: str) -> str:
    """The text with HTML's entities resolved; unchanged if the number of one is too long for
    Python."""
    try:
        return html.unescape(text)
    except ValueError:
        return text


#: Letters of a sentence that are checked: its beginning and its end. Between them it may repeat
#: what was sent.
_LONGEST = 20_000

_QUOTES = str.maketrans("’‘`´“”„«»", "''''" + '"""""')

#: Quoted text, in quotes of one kind.
_QUOTED = re.compile(r'"[^"]*"|(?<!\w)\'[^\']*\'(?!\w)')

_TEXT = Path(__file__).with_suffix(".toml").read_text(encoding="utf-8")
_PHRASES: dict[str, Any] = tomllib.loads(_TEXT)


def _any_of(*kinds: str) -> str:
    phrases = []
    for kind in kinds:
        phrases += _PHRASES[kind]
    return "|".join(phrases).replace("<not>", _PHRASES["not"])


_HARMLESS = re.compile(_any_of("harmless"))
_ALREADY_THERE = re.compile(_any_of("already-there"))
_ALREADY = re.compile(_any_of("already-there", "already-so"))
_WITHOUT_TAG = re.compile(_any_of("without-tag"))
_ABSENT = re.compile(_any_of("absent"))
_CANNOT_BE = re.compile(_any_of("absent", "impossible"))
_NEGATIVE = re.compile(_any_of("absent", "impossible", "negative"))


_FAILED = ("error", "failed", "failure", "fail")


def _find_error_words(members: Mapping[str, Any]) -> str | None:
    """The words of an object that says that it is an error; None if it does not. `members` have
    names in lower case."""
    success = str(members.get("success", "")).strip().lower()
    status = str(members.get("status", "")).strip().lower()
    is_failure = success in ("false", "0", "no") or status in _FAILED
    code = str(members.get("errorcode") or "").strip()
    has_code = code not in ("", "0")
    has_words = members.get("errors") or members.get("errormessage")
    if not (is_failure or has_code or has_words):
        return None
    for name in ("errormessage", "message", "item", "errors"):
        if members.get(name):
            return collect_words(members[name]) or _WITHOUT_WORDS
    return _WITHOUT_WORDS


_WITHOUT_WORDS = "an error without words"


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
    members = {}
    for name, inner in value.items():
        folded_name = str(name).lower().replace("_", "")
        members[folded_name] = inner
    words = _find_error_words(members)
    if words is not None:
        yield words
    for inner in value.values():
        yield from _list_nested_errors(inner, depth + 1)
