"""Changes to a true answer, drawn from a generator: what a broken, hasty or hostile service could send in its
place.

`mutate(rng, sample, others)` → the body, and the names of the changes. Not here: what must hold of them
(`oracle`)."""

from __future__ import annotations

import gzip
import json
import random
from collections.abc import Callable, Sequence
from typing import Any

from tests.attack.corpus import Sample

#: A word that no answer has: it must come to light again, or the answer be refused.
MARKER = "zqxmarker"
#: Stands for JSON that Python would not write, until the body is text.
_RAW = "\ue000raw"

_DATES = (
    "0000-00-00", "0000-00-00 00:00:00", "-0001-11-30", "02/30/2014 16:33", "13/13/2013", "2014-11-04T16:33:00Z", "2014-11-04 25:00",
    "2014-11-04T16:33:00+14:00", "04.11.2014", "Tue, 04 Nov 2014", "1415118780", "1415118780000", 1415118780, -1, 1e308, "9999-12-31",
    "N/A",    "11/04/2014 16:33:60", "03/08/2015 02:30", "11/01/2015 01:30", "2014-11-04 00:00 AM", "today", "٠٤/١١/٢٠١٤",
)  # fmt: skip
_TEXTS = (
    "", " ", "null", "None", "0", "-", "N/A", "false", "[]", "{}", "\x00", "\u202etxt", "=1+1", "<script>", "a" * 3000, "\u2028", "\ufeff",
    f"{MARKER} in words", "12,5", "1.000", "1e5", "0x10", "१२", "12 34", "-0", "+7", "NaN", "Infinity", f"{MARKER}@example.com(2 clicks)",
)  # fmt: skip
_NUMBERS = (
    0,
    -1,
    1,
    True,
    False,
    1.5,
    2**31,
    2**53 + 1,
    2**63 - 1,
    2**63,
    -(2**63) - 1,
    2**64,
    1e308,
    -0.0,
    5e-324,
)
_RAWS = (
    "NaN", "Infinity", "-Infinity", "1e999", "-1e999", "9" * 30, "9" * 400, "9" * 5000, "1" + "0" * 4300, "0." + "1" * 400, "1E400000",
    "01", "+1", "0x1f", "1.", ".5", "'a'", "undefined", "\"\\ud83d\"", "\"\\ude00\\ud83d\"", "\"\\ud800abc\"", "\"\\x41\"", "\"a\nb\"",
    "\"\t\"",    "[" * 100 + "]" * 100, "{\"a\":" * 100 + "1" + "}" * 100, "[" * 3000 + "]" * 3000, "{\"id\":" * 1500 + "1" + "}" * 1500,
    "[" * 60000,
    "/*c*/1", "1,", "\"\\u0000\"", "True", "nul", "--1",
)  # fmt: skip
_KEYS = (
    "",
    " ",
    "id ",
    " id",
    "ID",
    "Id",
    "\x00",
    "__proto__",
    "0",
    "-1",
    "1.0",
    "errorCode",
    "items",
    "data",
    "count",
    "\u202e",
    "id\u0000",
    MARKER,
)

Place = tuple[Any, Any]  # what holds it, under which name


class _Twin(str):
    """A name that an object may have a second time."""

    __slots__ = ("number",)

    def __hash__(self) -> int:
        return id(self)

    def __eq__(self, other: object) -> bool:
        return self is other


def mutate(rng: random.Random, sample: Sample, others: Sequence[Sample]) -> tuple[bytes, list[str]]:
    """Mostly one change; two or three in a third of the cases, one of them of bytes in a fifth."""
    if rng.random() < 0.02:
        return rng.choice(_WHOLE), ["whole"]
    tree, names, raws = [json.loads(sample.body)], [], [""]
    for _ in range(rng.choice((1, 1, 1, 1, 2, 3))):
        change = rng.choice(_CHANGES)
        names.append(change.__name__.strip("_"))
        change(rng, tree, raws, others)
    text = json.dumps(tree[0], ensure_ascii=rng.random() < 0.3)
    for raw in raws[1:]:
        text = text.replace(json.dumps(_RAW), raw, 1).replace(f'"{_RAW}"', raw, 1)
    body = text.encode("utf-8", "surrogatepass")
    if rng.random() < 0.2:
        damage = rng.choice(_DAMAGES)
        names.append(damage.__name__.strip("_"))
        body = damage(rng, body)
    return body, names


_WHOLE = (
    b"", b" ", b"{}", b"[]", b"null", b"true", b"1", b'""', b"\xef\xbb\xbf", b"\x00", b"<html></html>", b'{"response": null}', b"ok", b"{",
    b'{"response": {}}', b'{"response": {"header": '
        b'{"status": "ok"}}}', b'{"response": {"header": {"status": "ok"}, "data": null}}',
    b'{"response": {"header": {"status": "ok"}, '
        b'"data": []}}', b'{"response": {"header": {"status": "ok"}, "data": {}}}',
    b'{"response": {"header": {"status": "ok"}, '
        b'"data": "Success"}}', b'{"response": []}', b"[" * 100000, b'{"a":' * 100000,
)  # fmt: skip


def _places(tree: list[Any]) -> list[Place]:
    found: list[Place] = []
    waiting: list[Any] = [tree[0]]
    while waiting and len(found) < 3000:
        around = waiting.pop()
        for name, part in around.items() if isinstance(around, dict) else enumerate(around):
            found.append((around, name))
            if isinstance(part, dict | list) and part:
                waiting.append(part)
    return found


def _place(rng: random.Random, tree: list[Any], kind: type | tuple[type, ...] = object) -> Place | None:
    """Any place whose value is of the kind; those near the top as often as the many below them."""
    places = (
        [place for place in _places(tree) if isinstance(place[0][place[1]], kind)]
        if isinstance(tree[0], dict | list)
        else []
    )
    if not places:
        return None
    return rng.choice(places[: max(1, len(places) // 6)]) if rng.random() < 0.4 else rng.choice(places)


def _some(rng: random.Random, raws: list[str]) -> Any:
    draw = rng.random()
    if draw < 0.25:
        raws.append(rng.choice(_RAWS))
        return _RAW
    kinds: tuple[Sequence[Any], ...] = (
        _TEXTS,
        _NUMBERS,
        _DATES,
        (None, [], {}, [None], [[]], {"a": None}, {"id": MARKER}, [{}], ["x"], [1, 2]),
    )
    return rng.choice(rng.choice(kinds))


Change = Callable[[random.Random, list[Any], list[str], Sequence[Sample]], None]


def _nothing(rng: random.Random, tree: list[Any], raws: list[str], others: Sequence[Sample]) -> None:
    if place := _place(rng, tree):
        place[0][place[1]] = None


def _empty_kind(rng: random.Random, tree: list[Any], raws: list[str], others: Sequence[Sample]) -> None:
    if place := _place(rng, tree, (dict, list)):
        place[0][place[1]] = rng.choice(([], {}, "", 0, False, None, "0", [[]], [None], {"0": None}))


def _other_value(rng: random.Random, tree: list[Any], raws: list[str], others: Sequence[Sample]) -> None:
    if place := _place(rng, tree):
        place[0][place[1]] = _some(rng, raws)


def _odd_scalar(rng: random.Random, tree: list[Any], raws: list[str], others: Sequence[Sample]) -> None:
    if place := _place(rng, tree, (str, int, float)):
        place[0][place[1]] = _some(rng, raws)


def _delete(rng: random.Random, tree: list[Any], raws: list[str], others: Sequence[Sample]) -> None:
    if place := _place(rng, tree):
        del place[0][place[1]]


def _twice(rng: random.Random, tree: list[Any], raws: list[str], others: Sequence[Sample]) -> None:
    """A member a second time, before or after the first, with the same value or another."""
    if (place := _place(rng, tree)) is None or not isinstance(place[0], dict):
        return
    around, name = place
    value = around[name]
    again = rng.choice((value, None, [], {}, "", 0, _some(rng, raws)))
    members = [(key, part) for key, part in around.items() if key is not name]
    pair = [(name, value), (_Twin(rng.choice((name, name, str(name).upper()))), again)]
    around.clear()
    around.update(dict([*members, *(pair if rng.random() < 0.5 else pair[::-1])]))


def _cut_entries(rng: random.Random, tree: list[Any], raws: list[str], others: Sequence[Sample]) -> None:
    """Entries are left out; what counts them stays."""
    if (place := _place(rng, tree, (dict, list))) is None:
        return
    part = place[0][place[1]]
    keep = rng.randrange(len(part) + 1)
    place[0][place[1]] = part[:keep] if isinstance(part, list) else dict(list(part.items())[:keep])


def _repeat_entries(rng: random.Random, tree: list[Any], raws: list[str], others: Sequence[Sample]) -> None:
    if place := _place(rng, tree, list):
        place[0][place[1]] = place[0][place[1]] * rng.choice((2, 3, 20))


def _nest(rng: random.Random, tree: list[Any], raws: list[str], others: Sequence[Sample]) -> None:
    if place := _place(rng, tree):
        depth, value = rng.choice((1, 1, 1, 2, 3, 100)), place[0][place[1]]
        wrap = rng.choice(
            (lambda inner: [inner], lambda inner: {rng.choice(("data", "items", "x", "0")): inner})
        )
        for _ in range(depth):
            value = wrap(value)
        place[0][place[1]] = value


def _unwrap(rng: random.Random, tree: list[Any], raws: list[str], others: Sequence[Sample]) -> None:
    if (place := _place(rng, tree, (dict, list))) and (inside := place[0][place[1]]):
        place[0][place[1]] = rng.choice(list(inside.values()) if isinstance(inside, dict) else inside)


def _other_kind(rng: random.Random, tree: list[Any], raws: list[str], others: Sequence[Sample]) -> None:
    """Strings for numbers, numbers for strings, lists for objects, objects for lists."""
    if (place := _place(rng, tree)) is None:
        return
    value = place[0][place[1]]
    if isinstance(value, list):
        changed: Any = {str(number): part for number, part in enumerate(value, rng.randrange(2))}
    elif isinstance(value, dict):
        changed = rng.choice((list(value.values()), [value], [list(pair) for pair in value.items()]))
    elif isinstance(value, str):
        changed = (
            float(value)
            if value.isascii() and value.isdigit() and rng.random() < 0.3
            else int(value)
            if value.isascii() and value.isdigit()
            else [value]
        )
    else:
        changed = str(value)
    place[0][place[1]] = changed


def _odd_name(rng: random.Random, tree: list[Any], raws: list[str], others: Sequence[Sample]) -> None:
    if (place := _place(rng, tree)) is None or not isinstance(place[0], dict):
        return
    around, name = place
    new = rng.choice(
        (
            str(name).upper(),
            str(name).title(),
            f" {name}",
            f"{name} ",
            f"{name}s",
            str(name)[:-1],
            rng.choice(_KEYS),
        )
    )
    pairs = [(_Twin(new) if key is name else key, part) for key, part in around.items()]
    around.clear()
    around.update(pairs)


def _swap(rng: random.Random, tree: list[Any], raws: list[str], others: Sequence[Sample]) -> None:
    one, other = _place(rng, tree), _place(rng, tree)
    if one and other and one[0] is other[0]:
        one[0][one[1]], other[0][other[1]] = other[0][other[1]], one[0][one[1]]
    elif one and other:
        one[0][one[1]] = json.loads(json.dumps(other[0][other[1]]))


def _foreign(rng: random.Random, tree: list[Any], raws: list[str], others: Sequence[Sample]) -> None:
    """Another operation's answer, or a part of it in the place of ours."""
    other = [json.loads(rng.choice(others).body)]
    if rng.random() < 0.3:
        tree[0] = other[0]
    elif (place := _place(rng, tree, (dict, list))) and (theirs := _place(rng, other, (dict, list))):
        place[0][place[1]] = theirs[0][theirs[1]]


def _error_inside(rng: random.Random, tree: list[Any], raws: list[str], others: Sequence[Sample]) -> None:
    if place := _place(rng, tree, dict):
        code = rng.choice((1000, "1002", 1003, None, "", [], "x", 0))
        place[0][place[1]] |= {
            rng.choice(("errorCode", "errorcode", "ErrorCode")): code,
            "errorMessage": rng.choice(_TEXTS),
        }


def _verdict(rng: random.Random, tree: list[Any], raws: list[str], others: Sequence[Sample]) -> None:
    response = tree[0].get("response") if isinstance(tree[0], dict) else None
    if isinstance(response, dict) and isinstance(response.get("header"), dict):
        response["header"]["status"] = rng.choice(
            ("error", "OK", " ok ", "", None, True, 1, [], "okay", "fail", ["ok"], "Error")
        )


def _count(rng: random.Random, tree: list[Any], raws: list[str], others: Sequence[Sample]) -> None:
    places = [place for place in _places(tree) if place[1] in ("count", "total", "positives", "negatives")]
    if places:
        around, name = rng.choice(places)
        around[name] = rng.choice(
            (0, -1, 1, "x", None, [], 10**9, "4", 2**70, 1.5, "1,000", True, {}, "0", 5)
        )


def _marker(rng: random.Random, tree: list[Any], raws: list[str], others: Sequence[Sample]) -> None:
    """Something that nobody announced, which has to come to light."""
    if (place := _place(rng, tree, (dict, list))) is None:
        return
    inside = place[0][place[1]]
    found = rng.choice(
        (f"{MARKER} text", {"deep": [f"{MARKER} deep"]}, [f"{MARKER} list"], {"id": "7", "name": MARKER})
    )
    if isinstance(inside, dict):
        inside[rng.choice(("unknown", "X", "items2", "data2", "name", "7"))] = found
    else:
        inside.insert(rng.randrange(len(inside) + 1), found)


def _reorder(rng: random.Random, tree: list[Any], raws: list[str], others: Sequence[Sample]) -> None:
    if place := _place(rng, tree, (dict, list)):
        inside = place[0][place[1]]
        pairs = list(inside.items()) if isinstance(inside, dict) else list(inside)
        rng.shuffle(pairs)
        place[0][place[1]] = dict(pairs) if isinstance(inside, dict) else pairs


_CHANGES: tuple[Change, ...] = (
    _nothing, _empty_kind, _other_value, _odd_scalar, _odd_scalar, _delete, _delete, _twice, _cut_entries, _cut_entries, _repeat_entries,
    _nest, _unwrap, _other_kind, _odd_name, _swap, _foreign, _error_inside, _verdict, _count, _marker, _reorder,
)  # fmt: skip

Damage = Callable[[random.Random, bytes], bytes]


def _flip(rng: random.Random, body: bytes) -> bytes:
    changed = bytearray(body)
    for _ in range(rng.choice((1, 1, 2, 8))):
        if changed:
            changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
    return bytes(changed)


def _cut(rng: random.Random, body: bytes) -> bytes:
    at = rng.randrange(len(body) + 1)
    return body[:at] if rng.random() < 0.8 else body[at:]


def _insert(rng: random.Random, body: bytes) -> bytes:
    at = rng.randrange(len(body) + 1)
    chunk = rng.choice(
        (
            b"\x00",
            b"\xff",
            b"\xc3",
            b"\xed\xa0\x80",
            b'"',
            b"}",
            b",",
            b"\\",
            b"\n",
            b"]",
            b"<br />\nWarning: x in y\n",
            b"\xef\xbb\xbf",
        )
    )
    return body[:at] + chunk + body[at:]


def _copy_chunk(rng: random.Random, body: bytes) -> bytes:
    start = rng.randrange(len(body) + 1)
    chunk = body[start : start + rng.choice((1, 8, 64, 512))]
    at = rng.choice((start, rng.randrange(len(body) + 1)))
    return body[:at] + chunk + body[at:]


def _drop_chunk(rng: random.Random, body: bytes) -> bytes:
    start = rng.randrange(len(body) + 1)
    return body[:start] + body[start + rng.choice((1, 8, 64, 512)) :]


def _other_encoding(rng: random.Random, body: bytes) -> bytes:
    text = body.decode("utf-8", "replace")
    encoding = rng.choice(
        (
            "utf-16",
            "utf-16-le",
            "utf-16-be",
            "utf-32",
            "latin-1",
            "cp1252",
            "utf-7",
            "utf-8-sig",
            "cp037",
            "shift_jis",
        )
    )
    return text.encode(encoding, "replace")


def _around(rng: random.Random, body: bytes) -> bytes:
    before = rng.choice(
        (
            b"",
            b"\xef\xbb\xbf",
            b"\xef\xbb\xbf\xef\xbb\xbf",
            b" \n\t",
            b"while(1);",
            b"callback(",
            b"<!-- x -->",
            b"\x1f\x8b",
            b"\xff\xfe",
        )
    )
    after = rng.choice(
        (
            b"",
            b"\n",
            b"\x00",
            b")",
            b"{}",
            b"<!-- 0.1 s -->",
            b",",
            b'{"response": {"header": {"status": "ok"}, "data": {}}}',
        )
    )
    return before + body + after


def _packed(rng: random.Random, body: bytes) -> bytes:
    return rng.choice(
        (
            gzip.compress(body),
            body + body,
            body[::-1],
            body.replace(b'"', b"'"),
            body.replace(b":", b"="),
            json.dumps(body.decode("utf-8", "replace")).encode(),
        )
    )


_DAMAGES: tuple[Damage, ...] = (
    _flip,
    _flip,
    _cut,
    _cut,
    _insert,
    _copy_chunk,
    _drop_chunk,
    _other_encoding,
    _around,
    _packed,
)
