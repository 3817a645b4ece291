"""What an answer holds and proves, read by the letter and by nobody's code but this: strict JSON, every
member once, the declared member in its place, collections that are collections, counts that are not above
what is there.

Not here: reading as the program does it. Nothing of `marketing_api` but the call is used.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from marketing_api.operation import Call

#: Entries of an answer by the table that they fill.
Entries = dict[str, list[Any]]


class Doubled(dict[str, Any]):
    """An object that names a member twice; `pairs` has both."""

    pairs: list[tuple[str, Any]]


@dataclass
class Seen:
    """`entries` by table: a table that is not there was not spoken of. `problems`: why the answer proves no
    absence. `unread`: tables with an entry that nobody can tell apart. `wrappers`: the objects that only hold
    others, by id, with the members that matter (None: all); `roots`: the declared members."""

    entries: Entries = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    unread: set[str] = field(default_factory=set)
    wrappers: dict[int, set[str] | None] = field(default_factory=dict)
    roots: list[Any] = field(default_factory=list)

    def proves(self, table: str) -> bool:
        return not self.problems and table in self.entries and table not in self.unread


def prove(call: Call, body: bytes) -> Seen | None:
    """What a whole and uncontradicted answer holds; None when it is not one."""
    try:
        seen = look(call, strictly(body))
    except ValueError:
        return None
    return None if seen.problems else seen


def strictly(body: bytes) -> Any:
    """ValueError when it is no JSON by the letter."""
    return json.loads(body.decode("utf-8"), object_pairs_hook=_object, parse_constant=_refuse)


def leniently(body: bytes) -> Any:
    """The same of what can be mended: control characters, NaN, bytes that are no UTF-8. ValueError when that
    is in vain."""
    text = body.decode(json.detect_encoding(body[:4]), "replace")
    return json.loads(
        text.removeprefix("\ufeff"),
        object_pairs_hook=_object,
        strict=False,
        parse_int=_Digits,
        parse_float=_finite,
    )


class _Digits(str):
    """A whole number of any length."""

    __slots__ = ()


def _finite(digits: str) -> float | str:
    return number if math.isfinite(number := float(digits)) else digits


def _refuse(word: str) -> Any:
    raise ValueError(word)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if any("\ufffd" in name for name in found):
        raise ValueError("a damaged name")
    if len(found) == len(pairs):
        return found
    doubled = Doubled(found)
    doubled.pairs = pairs
    return doubled


def look(call: Call, whole: Any) -> Seen:
    """Walk the answer along the places that the specification names."""
    walk = _Walk(call)
    response = walk.member(whole, "response")
    header = walk.member(whole if response is None else response, "header")
    data = (
        whole
        if response is None and header is None
        else walk.member(whole if response is None else response, "data")
    )
    if header is not None and str(walk.member(header, "status")).strip().lower() != "ok":
        walk.problem("the header is not ok")
    if walk.has(data, "errorCode"):
        walk.problem("an error in the data")
    _READ[call.operation.name](walk, data)
    return walk.seen


class _Walk:
    """Where it is, what it found."""

    def __init__(self, call: Call) -> None:
        self.params = call.params
        self.at = call.operation.at
        self.seen = Seen()

    def problem(self, text: str) -> None:
        self.seen.problems.append(text)

    def has(self, value: Any, name: str) -> bool:
        return isinstance(value, dict) and any(key.lower() == name.lower() for key in value)

    def member(self, value: Any, name: str) -> Any:
        """The member of a wrapper, case aside; None, and a problem, when it is there twice or the wrapper is
        none."""
        if not isinstance(value, dict):
            self.problem(f"around {name}: {type(value).__name__}")
            return None
        if (names := self.seen.wrappers.setdefault(id(value), set())) is not None and name != "count":
            names.add(name.lower())
        pairs = value.pairs if isinstance(value, Doubled) else value.items()
        found = [part for key, part in pairs if key.lower() == name.lower()]
        if len(found) > 1:
            self.problem(f"{name} twice")
        return found[-1] if found else None

    def root(self, data: Any, name: str = "") -> Any:
        """The declared member of `data`."""
        name = name or self.at
        if isinstance(data, Doubled):
            self.seen.roots += [part for key, part in data.pairs if key.lower() == name.lower()]
        found = self.member(data, name)
        if not isinstance(found, dict | list):
            self.problem(f"{name}: {'missing' if not self.has(data, name) else json.dumps(found)[:20]}")
        elif self.has(found, "errorCode") or (
            isinstance(found, list) and len(found) == 1 and self.has(found[0], "errorCode")
        ):
            self.problem(f"an error in {name}")
        if not isinstance(data, Doubled):
            self.seen.roots.append(found)
        return found

    def collection(self, value: Any, where: str) -> list[Any]:
        """A list, an object keyed by number, a single entry with its id."""
        if isinstance(value, list):
            return value
        if not isinstance(value, dict):
            self.problem(f"{where}: {type(value).__name__}")
            return []
        if value.get("id") is not None and not isinstance(value["id"], dict | list):
            return [value]
        self.seen.wrappers[id(value)] = None
        if isinstance(value, Doubled) or not all(name.isdecimal() for name in value):
            self.problem(f"{where}: an object that is no list")
        return [part for _, part in value.pairs] if isinstance(value, Doubled) else list(value.values())

    def listed(self, payload: Any) -> Any:
        """The `items` of a `{count, items}` wrapper, or the bare collection."""
        if not isinstance(payload, dict):
            return payload
        items = self.member(payload, "items")
        if payload and not self.has(payload, "items") and all(name.isdecimal() for name in payload):
            return payload
        if items is None and payload and number(self.member(payload, "count")) != 0:
            self.problem("no items")
        return [] if items is None else items

    def count(self, payload: Any, served: int) -> None:
        counted = number(self.member(payload, "count")) if isinstance(payload, dict) else None
        if counted is not None and counted > served:
            self.problem(f"a count of {counted} above {served}")

    def take(self, table: str, entries: list[Any], *keys: str) -> None:
        """Note the entries; one without what tells it apart makes the table unread."""
        self.seen.entries.setdefault(table, []).extend(entries)
        for entry in entries:
            if (
                not isinstance(entry, dict)
                or isinstance(entry, Doubled)
                or any(number(entry.get(key)) is None for key in keys)
            ):
                self.seen.unread.add(table)


def number(value: Any) -> int | None:
    """A whole number, however it is written; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    text = str(value).strip().replace(",", "").removesuffix(".0")
    return (
        int(text) if text.lstrip("+-").isascii() and text.lstrip("+-").isdigit() and len(text) < 40 else None
    )


Reading = Callable[[_Walk, Any], None]
_READ: dict[str, Reading] = {}


def _reads(*names: str) -> Callable[[Reading], Reading]:
    def register(reading: Reading) -> Reading:
        _READ.update(dict.fromkeys(names, reading))
        return reading

    return register


def _uniform(name: str, table: str, key: str = "id") -> None:
    def read(walk: _Walk, data: Any) -> None:
        payload = walk.root(data)
        entries = walk.collection(walk.listed(payload), "items")
        walk.count(payload, len(entries))
        walk.take(table, entries, key)

    _READ[name] = read


def _single(name: str, table: str, *children: tuple[str, str]) -> None:
    """One object, or a list of it; `children`: (member, table) within."""

    def read(walk: _Walk, data: Any) -> None:
        payload = walk.root(data)
        entries = (
            [payload]
            if isinstance(payload, dict) and payload
            else payload
            if isinstance(payload, list)
            else []
        )
        walk.take(table, entries, *(("id",) if table != "business" else ()))
        if table == "business" and not entries:
            walk.problem("no business")
        for entry in entries:
            for member, child in children:
                _fields(walk, entry, member, child)

    _READ[name] = read


def _fields(walk: _Walk, entry: Any, member: str, table: str) -> None:
    """{id: label}, or a list of objects; what is neither is unread."""
    fields = entry.get(member) if isinstance(entry, dict) else None
    if member not in (entry if isinstance(entry, dict) else ()):
        return
    inside = (
        list(fields.values()) if isinstance(fields, dict) else fields if isinstance(fields, list) else None
    )
    walk.seen.entries.setdefault(table, []).extend(inside or [])
    is_plain = isinstance(fields, dict) and all(
        name.isdecimal() and isinstance(label, str) for name, label in fields.items()
    )
    if isinstance(fields, Doubled) or (fields != [] and not is_plain):
        walk.seen.unread.add(table)


for _name, _table in (
    ("reputation/direct", "direct_reviews"),
    ("socialmedia/stats", "social_links"),
    ("emailmarketing/getcontacts", "contacts"),
    ("emailmarketing/getcoupon", "coupons"),
    ("emailmarketing/getlists", "lists"),
    ("emailmarketing/getaudiences", "audiences"),
    ("user/managers", "managers"),
    ("user/groups", "user_groups"),
    ("goal/lists", "goals"),
    ("goal/listbydomain", "goals"),
    ("webhook/lists", "webhooks"),
):
    _uniform(_name, _table)
_single("app/me", "business")
_single("emailmarketing/getcampaign", "campaigns")
_single("emailmarketing/getlist", "lists", ("fields", "list_fields"))
_single("goal/show", "goals")
_single("webhook/show", "webhooks")
_single("socialmedia/getpost", "social_post_details")


@_reads("reputation/online")
def _online(walk: _Walk, data: Any) -> None:
    payload = walk.root(data)
    items = walk.listed(payload)
    channels = _named(walk, items, "channels")
    walk.take("online_review_channels", [value for _, value in channels])
    for _, channel in channels:
        if isinstance(channel, dict) and channel.get("data") not in (None, ""):
            walk.take("online_reviews", walk.collection(channel["data"], "data"))


def _named(walk: _Walk, value: Any, where: str) -> list[tuple[str, Any]]:
    """The members of an object whose names are its entries' (channels, dates, networks); a list has no
    names."""
    if isinstance(value, dict):
        walk.seen.wrappers[id(value)] = None
        if isinstance(value, Doubled):
            walk.problem(f"{where}: a name twice")
        return list(value.pairs if isinstance(value, Doubled) else value.items())
    return [("", part) for part in walk.collection(value, where)]


@_reads("reputation/sentiment")
def _sentiment(walk: _Walk, data: Any) -> None:
    payload = walk.root(data)
    walk.seen.entries.setdefault("sentiment_mentions", [])
    items = walk.listed(payload)
    if isinstance(items, list):
        walk.take("sentiment_mentions", items)
        return
    totals = payload.get("overall", {}) if isinstance(payload, dict) else {}
    totals = totals.get("stats", {}) if isinstance(totals, dict) else {}
    for name, group in _named(walk, items, "groups"):
        entries = walk.collection(group, name)
        walk.take("sentiment_mentions", entries)
        told = number(totals.get(name.lower())) if isinstance(totals, dict) else None
        if told is not None and told > len(entries):
            walk.problem(f"{told} {name} where {len(entries)} are listed")


@_reads("reputation/stats")
def _stats(walk: _Walk, data: Any) -> None:
    payload = walk.root(data)
    walk.seen.wrappers.setdefault(id(payload), set())
    for name, table in (
        ("Reviews", "review_stats"),
        ("SocialMedia", "social_media_stats"),
        ("FeedbackHub", "feedback_views"),
    ):
        if walk.has(payload, name):
            walk.take(table, walk.collection(walk.member(payload, name), name))


@_reads("socialmedia/channels")
def _channels(walk: _Walk, data: Any) -> None:
    payload = walk.root(data)
    walk.seen.entries.setdefault("social_profiles", [])
    if isinstance(payload, list):  # in a list there are no networks
        walk.take("social_profiles", payload)
        return
    for network, value in _named(walk, payload, "channels"):
        if isinstance(value, list):
            walk.take("social_profiles", value)
            continue
        if not isinstance(value, dict):
            walk.problem(f"{network}: {type(value).__name__}")
            continue
        inside = [
            walk.collection(part, name)
            for name, part in _named(walk, value, network)
            if name.lower() != "count"
        ]
        walk.seen.wrappers[id(value)] = {name.lower() for name in value} - {"count"}
        walk.count(value, sum(map(len, inside)))
        for entries in inside:
            walk.take("social_profiles", entries)


@_reads("socialmedia/calendar")
def _calendar(walk: _Walk, data: Any) -> None:
    payload = walk.root(data)
    posts = []
    walk.seen.entries.setdefault("social_posts", [])
    for name, value in _named(walk, walk.listed(payload), "dates"):
        is_post = isinstance(value, dict) and ("id" in value or "channel" in value)
        posts += [value] if is_post else walk.collection(value, name)
    walk.count(payload, len(posts))
    walk.take("social_posts", posts, "id")


@_reads("emailmarketing/campaigns")
def _campaigns(walk: _Walk, data: Any) -> None:
    payload = walk.root(data)
    entries: list[Any] = []
    items = walk.listed(payload)
    for name, group in _named(walk, items, "groups"):
        if isinstance(group, dict) and "id" in group:
            entries.append(group)
            continue
        if isinstance(items, list):  # in a list there are no groups
            entries.append(group)
            continue
        inside = walk.member(group, "data") if walk.has(group, "data") else group
        found = walk.collection(inside, name)
        walk.count(group, len(found))
        entries += found
    walk.count(payload, len(entries))
    walk.take("campaigns", entries, "id")


@_reads("emailmarketing/stats")
def _campaign_stats(walk: _Walk, data: Any) -> None:
    payload = walk.root(data)
    one = payload[0] if isinstance(payload, list) and len(payload) == 1 else payload
    walk.take("campaign_stats", [one])
    if not walk.has(one, "clicks"):
        return
    links = walk.collection(walk.member(one, "clicks"), "clicks")
    walk.seen.entries.setdefault("campaign_clickers", [])
    for link in links:
        if not isinstance(link, dict) or isinstance(link, Doubled) or not isinstance(link.get("url"), str):
            walk.seen.unread.add("campaign_clickers")
        for name in [name for name in link if name.lower() == "clickers"] if isinstance(link, dict) else ():
            _clickers(walk, link[name])


def _clickers(walk: _Walk, clickers: Any) -> None:
    """A list of texts, or an object that numbers them."""
    inside = (
        clickers
        if isinstance(clickers, list)
        else list(clickers.values())
        if isinstance(clickers, dict)
        else []
    )
    walk.seen.entries["campaign_clickers"] += inside
    is_list = isinstance(clickers, list) or (
        isinstance(clickers, dict) and all(name.isdecimal() for name in clickers)
    )
    if (
        not is_list
        or isinstance(clickers, Doubled)
        or not all(isinstance(clicker, str) for clicker in inside)
    ):
        walk.seen.unread.add("campaign_clickers")


@_reads("emailmarketing/getcontacttimeline")
def _timeline(walk: _Walk, data: Any) -> None:
    for name, table in (
        ("timeline", "timeline_events"),
        ("utm", "timeline_visits"),
        ("automated", "timeline_automations"),
    ):
        if name == "timeline" or walk.has(data, name):
            payload = walk.root(data, name)
            inside = walk.member(payload, "data") if walk.has(payload, "data") else payload
            walk.take(table, walk.collection(inside, name))


@_reads("user/lists")
def _users(walk: _Walk, data: Any) -> None:
    payload = walk.root(data)
    users: list[Any] = []
    for business, value in _named(walk, walk.listed(payload), "businesses"):
        inside = walk.member(value, "users") if walk.has(value, "users") else value
        users += [user for _, user in _named(walk, inside, business)]
    walk.count(payload, len(users))
    walk.take("users", users)


def leaves(value: Any, wrappers: Mapping[int, set[str] | None] = MappingProxyType({})) -> Iterator[Any]:
    """Every scalar and every name within; of wrappers only what stands in the collections that matter, each
    time that it stands there."""
    if isinstance(value, dict):
        if id(value) not in wrappers:
            yield from value
        matter = wrappers.get(id(value))
        for name, part in (
            value.pairs if isinstance(value, Doubled) and id(value) in wrappers else value.items()
        ):
            if id(value) not in wrappers or (
                isinstance(part, dict | list) and (matter is None or name.lower() in matter)
            ):
                yield from leaves(part, wrappers)
    elif isinstance(value, list):
        for part in value:
            yield from leaves(part, wrappers)
    else:
        yield value
