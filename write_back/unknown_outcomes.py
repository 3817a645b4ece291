"""Which activities without a whole response a timeline shows. Pure.

How an activity shows in a timeline is not specified: its text may stand in the snippet or in a
detail, with entities, other blanks or an ending cut off, its time as a timestamp or as a local text
of whole minutes. Every entry counts for one item only, so that two equal activities need two
entries. Not here: fetching timelines (`kinds.activities`), when something is looked for or sent
again (`sending`)."""

import datetime as dt
import math
import re
import unicodedata
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum

from marketing_api.contact_lookup import Timeline, TimelineEntry
from marketing_api.write_result import unescape_html
from write_back.input.values import MAX_DESCRIPTION
from write_back.outbox.outbox import Entry


class Presence(Enum):
    """What a timeline tells about an activity, in words for its outcome."""

    THERE = "found in the timeline after its response was lost"
    ABSENT = "not in the timeline"
    HIDDEN = (
        "the service does not show the contact's timeline as far back: whether it arrived cannot "
        "be told"
    )


#: A text that is the beginning of a description stands for it from so many characters on.
_CLIPPED_FROM = 20
#: Zones differ by whole quarters of an hour: a timestamp so far off, with the right local text, was
#: reckoned in another zone.
_QUARTER_S = 900
_SPARE_S = 3600


@dataclass(frozen=True, slots=True)
class SoughtActivity:
    """An activity of ours. `is_done`: the service took it, so that one entry is its own, whoever
    else may look alike; `is_settled`: and so long ago that it shows."""

    item_id: int
    description: str = field(repr=False)
    local: dt.datetime  # as sent, in the account's time zone
    at: int | None  # the same, unix seconds
    is_done: bool = False
    is_settled: bool = True


def describe_sought(entry: Entry, settled_before: float = math.inf) -> SoughtActivity:
    """`settled_before`: what was done by then (unix seconds) shows."""
    return SoughtActivity(
        entry.item_id,
        entry.params["description"],
        dt.datetime.fromisoformat(entry.params["datetime"]),
        entry.expected.at,
        entry.is_done,
        (entry.done_at or 0.0) <= settled_before,
    )


def look_for(items: Iterable[SoughtActivity], timeline: Timeline) -> dict[int, Presence]:
    """What becomes of each item (by its number): as many as fit have an entry, the surest
    likenesses first.

    What is done has its entry, whoever else may look alike. What was done just now may not show
    yet: it takes part like those that are unknown, and goes first only where its likeness is as
    sure."""
    ordered = sorted(items, key=lambda item: (not item.is_done, item.item_id))
    first = {item.item_id for item in ordered if item.is_done and item.is_settled}
    matched = match_entries(
        {item.item_id: _match_costs(item, timeline.entries) for item in ordered}, first
    )
    oldest = min((entry.at for entry in timeline.entries if entry.at is not None), default=None)
    oldest_local = min(
        (entry.local for entry in timeline.entries if entry.local is not None), default=None
    )

    def find_presence(item: SoughtActivity) -> Presence:
        if item.item_id in matched:
            return Presence.THERE
        if timeline.is_cut and _is_before(item, oldest, oldest_local):
            return Presence.HIDDEN
        return Presence.ABSENT

    return {item.item_id: find_presence(item) for item in ordered}


def is_in_timeline(item: SoughtActivity, timeline: Timeline) -> bool:
    """Whether the timeline has the very same text at that time, whoever has written it."""
    return any(
        _likeness_of_time(item, entry) is not None
        and any(_likeness_of_text(item.description, text) == 0 for text in entry.texts)
        for entry in timeline.entries
    )


def _is_before(item: SoughtActivity, oldest: int | None, oldest_local: dt.datetime | None) -> bool:
    """Whether it may stand before the oldest that was served; of an empty timeline that was cut,
    everything may.

    With an hour to spare: the service may have read an ambiguous local time in the other way, and
    may not show seconds."""
    if oldest is not None and item.at is not None:
        return item.at - _SPARE_S <= oldest
    return oldest_local is None or item.local - dt.timedelta(seconds=_SPARE_S) <= oldest_local


def match_entries(
    costs: Mapping[int, Mapping[int, int]], first: Collection[int] = ()
) -> dict[int, int]:
    """Item → entry, of `costs` (item → entry → cost): the surest likeness first, those of `first`
    before all others. Then whoever has none is given the entry of another that has one left, since
    what is without an entry in the end is sent again."""
    item_of: dict[int, int] = {}

    def take_entry(item: int, tried: set[int]) -> bool:
        for entry in costs[item]:
            if entry not in tried:
                tried.add(entry)
                if entry not in item_of or take_entry(item_of[entry], tried):
                    item_of[entry] = item
                    return True
        return False

    for group in (costs.keys() & first, costs.keys() - first):
        left = set(group)
        for _, item, entry in sorted(
            (cost, one, at) for one in group for at, cost in costs[one].items()
        ):
            if item in left and entry not in item_of:
                item_of[entry] = item
                left.remove(item)
        for item in sorted(left):
            take_entry(item, set())
    return {item: entry for entry, item in item_of.items()}


def _match_costs(item: SoughtActivity, entries: Sequence[TimelineEntry]) -> dict[int, int]:
    """Entry → how unlike it is, for those that may be the item's.

    The text counts most: one step of it weighs 6, more than the rest together (at most 2 * 2 + 1).
    A step of the time weighs 2, and 1 more lets a done item go first, whose time tells nothing."""
    found = {}
    for place, entry in enumerate(entries):
        time = _likeness_of_time(item, entry)
        if time is None:
            continue
        texts = [
            unlike
            for text in entry.texts
            if (unlike := _likeness_of_text(item.description, text)) is not None
        ]
        # of two that were sent within one minute, the time does not tell whose is not there
        if texts:
            found[place] = 6 * min(texts) + (0 if item.is_done else 2 * time + 1)
    return found


def _likeness_of_time(item: SoughtActivity, entry: TimelineEntry) -> int | None:
    """0 the same second, 1 without its seconds, 2 the same local time although the timestamp is of
    another zone or hour."""
    if entry.at is not None and item.at is not None:
        if entry.at == item.at:
            return 0
        if entry.at == item.at - item.at % 60:
            return 1
    if entry.local is None or entry.local not in (item.local, item.local.replace(second=0)):
        return None
    if entry.at is None or item.at is None:
        return 0 if entry.local == item.local else 1
    return 2 if (entry.at - item.at) % _QUARTER_S in (0, _QUARTER_S - item.at % 60) else None


#: Letters of an entry that are compared: twice what a description may have.
_LONGEST = 2 * MAX_DESCRIPTION


def _likeness_of_text(description: str, text: str) -> int | None:
    """0 the same, 1 the same letters, from 2 on contained (the more, the more there is beside it),
    from 200 on its beginning."""
    sent = _simplify_text(description)
    listed = _simplify_text(text[:_LONGEST])
    if sent == listed:
        return 0
    letters = _letters_of(sent)
    if letters and letters == _letters_of(listed):
        return 1
    if sent and re.search(rf"(?<!\w){re.escape(sent)}(?!\w)", listed):
        return 2 + round(100 * (1 - len(sent) / len(listed)))
    beginning = listed.rstrip("…. ")
    if len(beginning) >= _CLIPPED_FROM and sent.startswith(beginning):
        return 200 + round(100 * (1 - len(beginning) / len(sent)))
    return None


def _simplify_text(text: str) -> str:
    """Entities resolved (twice, for what was escaped once more), one blank for many."""
    return " ".join(unicodedata.normalize("NFC", unescape_html(unescape_html(text))).split())


def _letters_of(text: str) -> str:
    return re.sub(r"[\W_]+", "", re.sub(r"<[^<>]*>", "", text)).casefold()
