"""Which activities without a complete response are in a timeline. Pure functions.

How a timeline shows an activity is not specified. Its text may be in the snippet or in a detail,
with entities, other blanks or without its end; its time may be a timestamp or a local text of whole
minutes. Each entry counts for one item, so two equal activities need two entries. Not here:
fetching timelines (`kinds.activities`), when an item is looked for or sent again (`sending`)."""

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
    """Whether a timeline has an activity, with the message for its outcome."""

    THERE = "found in the timeline after its response was lost"
    ABSENT = "not in the timeline"
    HIDDEN = (
        "the service does not show the contact's timeline that far back: it is unknown whether "
        "the activity arrived"
    )


#: A text that is only the beginning of a description counts as it from this length on.
_CLIPPED_FROM = 20
#: Time zones differ by whole quarters of an hour. If a timestamp differs by a multiple and the
#: local text is right, the service used another zone.
_QUARTER_S = 900
_SPARE_S = 3600


@dataclass(frozen=True, slots=True)
class SoughtActivity:
    """An activity that was sent. `is_done`: the service accepted it, so one entry is its own;
    `is_settled`: that was long enough ago for the entry to show."""

    item_id: int
    description: str = field(repr=False)
    local: dt.datetime  # as sent, in the account's time zone
    at: int | None  # the same, unix seconds
    is_done: bool = False
    is_settled: bool = True


def describe_sought(entry: Entry, settled_before: float = math.inf) -> SoughtActivity:
    """`settled_before`: activities that were done by then (unix seconds) show."""
    local = dt.datetime.fromisoformat(entry.params["datetime"])
    done_at = entry.done_at or 0.0
    return SoughtActivity(
        entry.item_id,
        entry.params["description"],
        local,
        entry.expected.at,
        entry.is_done,
        is_settled=done_at <= settled_before,
    )


def look_for(items: Iterable[SoughtActivity], timeline: Timeline) -> dict[int, Presence]:
    """The presence of each item, by its number: as many items as possible get an entry, the most
    similar first.

    A done item gets its entry before all others. An item that was done just now may not show yet:
    it competes like the unknown ones, and goes first only if it is equally similar."""
    ordered = sorted(items, key=lambda item: (not item.is_done, item.item_id))
    first = {item.item_id for item in ordered if item.is_done and item.is_settled}
    matched = match_entries(
        {item.item_id: _match_costs(item, timeline.entries) for item in ordered}, first
    )
    times = [entry.at for entry in timeline.entries if entry.at is not None]
    local_times = [entry.local for entry in timeline.entries if entry.local is not None]
    oldest = min(times, default=None)
    oldest_local = min(local_times, default=None)

    def find_presence(item: SoughtActivity) -> Presence:
        if item.item_id in matched:
            return Presence.THERE
        if timeline.is_cut and _is_before(item, oldest, oldest_local):
            return Presence.HIDDEN
        return Presence.ABSENT

    return {item.item_id: find_presence(item) for item in ordered}


def is_in_timeline(item: SoughtActivity, timeline: Timeline) -> bool:
    """Whether the timeline has the same text at that time, from any author."""
    for entry in timeline.entries:
        if _compare_times(item, entry) is None:
            continue
        differences = [_compare_texts(item.description, text) for text in entry.texts]
        if 0 in differences:
            return True
    return False


def _is_before(item: SoughtActivity, oldest: int | None, oldest_local: dt.datetime | None) -> bool:
    """Whether the item may be older than the oldest entry shown, so that it was cut off. In an
    empty timeline that was cut, every item may be.

    An hour is added, because the service may read an ambiguous local time the other way, and may
    not show seconds."""
    if oldest is not None and item.at is not None:
        return item.at - _SPARE_S <= oldest
    if oldest_local is None:
        return True
    spare = dt.timedelta(seconds=_SPARE_S)
    return item.local - spare <= oldest_local


def match_entries(
    costs: Mapping[int, Mapping[int, int]], first: Collection[int] = ()
) -> dict[int, int]:
    """Item → entry, from `costs` (item → entry → cost): the lowest cost first, items of `first`
    before all others. An item without an entry then gets the entry of another item that can use a
    free one, because an item without an entry is sent again."""
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
        pairs: list[tuple[int, int, int]] = []
        for item in group:
            pairs += [(cost, item, entry) for entry, cost in costs[item].items()]
        for _, item, entry in sorted(pairs):
            if item in left and entry not in item_of:
                item_of[entry] = item
                left.remove(item)
        for item in sorted(left):
            take_entry(item, set())
    return {item: entry for entry, item in item_of.items()}


def _match_costs(item: SoughtActivity, entries: Sequence[TimelineEntry]) -> dict[int, int]:
    """Entry → cost, for entries that may be the item's; the more they differ, the higher.

    A step of the text costs 6, more than everything else together (at most 2 * 2 + 1). A step of
    the time costs 2. 1 more lets a done item go first; its time costs nothing."""
    found = {}
    for place, entry in enumerate(entries):
        time = _compare_times(item, entry)
        if time is None:
            continue
        compared = [_compare_texts(item.description, text) for text in entry.texts]
        texts = [difference for difference in compared if difference is not None]
        # of two activities within one minute, the time does not show which one is missing
        if texts:
            other_costs = 0 if item.is_done else 2 * time + 1
            found[place] = 6 * min(texts) + other_costs
    return found


def _compare_times(item: SoughtActivity, entry: TimelineEntry) -> int | None:
    """0: the same second; 1: the same minute, without seconds; 2: the same local time, but a
    timestamp of another zone or hour; None: different."""
    if entry.at is not None and item.at is not None:
        if entry.at == item.at:
            return 0
        whole_minute = item.at - item.at % 60
        if entry.at == whole_minute:
            return 1
    without_seconds = item.local.replace(second=0)
    if entry.local not in (item.local, without_seconds):
        return None
    if entry.at is None or item.at is None:
        return 0 if entry.local == item.local else 1
    remainder = (entry.at - item.at) % _QUARTER_S
    seconds_cut_off = _QUARTER_S - item.at % 60
    is_other_zone = remainder in (0, seconds_cut_off)
    return 2 if is_other_zone else None


#: Letters of an entry that are compared: twice the length of a description.
_LONGEST = 2 * MAX_DESCRIPTION


def _compare_texts(description: str, text: str) -> int | None:
    """0: the same; 1: the same letters; from 2 on: the entry contains the description (the more
    other text, the more); from 200 on: the entry is its beginning; None: different."""
    sent = _simplify_text(description)
    listed = _simplify_text(text[:_LONGEST])
    if sent == listed:
        return 0
    letters = _letters_of(sent)
    if letters and letters == _letters_of(listed):
        return 1
    if sent and re.search(rf"(?<!\w){re.escape(sent)}(?!\w)", listed):
        share = len(sent) / len(listed)
        return 2 + round(100 * (1 - share))
    beginning = listed.rstrip("…. ")
    if len(beginning) >= _CLIPPED_FROM and sent.startswith(beginning):
        share = len(beginning) / len(sent)
        return 200 + round(100 * (1 - share))
    return None


def _simplify_text(text: str) -> str:
    """Without entities (twice, because a text may be escaped twice) and repeated blanks."""
    unescaped = unescape_html(unescape_html(text))
    normal = unicodedata.normalize("NFC", unescaped)
    return " ".join(normal.split())


def _letters_of(text: str) -> str:
    without_tags = re.sub(r"<[^<>]*>", "", text)
    letters = re.sub(r"[\W_]+", "", without_tags)
    return letters.casefold()
