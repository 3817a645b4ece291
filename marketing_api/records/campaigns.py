"""Records of e-mail campaigns and their statistics, and the operations that return them."""

import datetime as dt
from collections.abc import Iterator
from dataclasses import dataclass
from dataclasses import field as attribute
from functools import partial
from typing import Any

from marketing_api.address import normal_form
from marketing_api.operation import Area
from marketing_api.records.fields import (
    MaybeFloat,
    MaybeInt,
    MaybeMoment,
    MaybeText,
    MaybeWord,
    Record,
    Rows,
    Unread,
    field,
    key,
    mark_missing,
)
from marketing_api.records.shapes import (
    CutEntry,
    Entry,
    Params,
    as_object,
    as_objects,
    first_member,
    is_full,
    is_numbered,
    is_scalar,
    is_whole,
    items_of,
    list_entries,
    shape_entries,
)
from marketing_api.records.values import is_nothing, read_clicker, read_share

_UNTOLD = "NULL if not reported"  # observation 40


class Campaign(Record):
    """One campaign."""

    campaign_id: int = key("The service's id of the campaign.", "id")
    status: MaybeWord = field("draft, sent, scheduled or automation: its group in the listing.")
    type: MaybeText = field("automated (in the group automation) or standard.")
    subject: MaybeText = field("Subject line.")
    message: MaybeText = field("Body.", link=True)
    reply_to: MaybeText = field("Address that replies go to.", "replyto", personal=True)
    from_email: MaybeText = field("Address of the sender.", "fromemail", personal=True)
    from_name: MaybeText = field("Name of the sender.", personal=True)
    created_at: MaybeMoment = field("When it was created, UTC.", "creation_date")
    name: MaybeText = field(f"Internal name of the campaign; {_UNTOLD}.")
    sent_at: MaybeMoment = field(f"When it was or will be sent, UTC; {_UNTOLD}.", "sent_date")
    delivered_count: MaybeInt = field(f"Messages delivered; {_UNTOLD}.", "delivery_success")
    failed_count: MaybeInt = field(
        f"Messages that couldn't be delivered; {_UNTOLD}.", "delivery_failed"
    )


_AS_STATED = "Percentage as reported by the service. May contradict the counts and exceed 100."


class CampaignStats(Record):
    """Totals of one campaign, as of one day."""

    campaign_id: int = key("The service's id of the campaign.")
    observed_on: dt.date = key("The account's local date of the request.")
    opened_count: MaybeInt = field("Messages opened.")
    unopened_count: MaybeInt = field("Messages not opened.")
    bounced_count: MaybeInt = field("Messages bounced.")
    unsubscribed_count: MaybeInt = field("Recipients who unsubscribed.")
    opened_percent: MaybeFloat = field(_AS_STATED)
    unopened_percent: MaybeFloat = field(_AS_STATED)
    bounced_percent: MaybeFloat = field(_AS_STATED)
    unsubscribed_percent: MaybeFloat = field(_AS_STATED)


class CampaignLink(Record):
    """Clicks on one link of one campaign, as of one day."""

    campaign_id: int = key("The service's id of the campaign.")
    url: str = key("Target of the link.", link=True)
    observed_on: dt.date = key("The account's local date of the request.")
    message: MaybeText = field("Text of the link.", link=True)
    clicker_count: MaybeInt = field("Addresses that clicked it; NULL if one couldn't be read.")
    click_count: MaybeInt = field("Clicks of all addresses; NULL if one couldn't be read.")


class CampaignClicker(Record):
    """Clicks of one address on one link of one campaign."""

    campaign_id: int = key("The service's id of the campaign.")
    url: str = key("Target of the link.", link=True)
    email: str = key("Address that clicked.", personal=True)
    click_count: MaybeInt = field("Clicks of the address.")


#: The filter's word and others that the automation group may be called.
_AUTOMATION = frozenset({"automation", "automations", "automated"})


def read_campaigns(payload: Any, params: Params) -> Rows:
    """`read_campaigns`: {count, items: {group: {data: […]}}}; also groups that are lists, and
    campaigns without groups (row 16)."""
    filtered = params.get("filter", "all").lower()
    items = items_of(payload)
    is_grouped = isinstance(items, dict)
    for name, group in items.items() if is_grouped else [("", items)]:
        if isinstance(group, dict) and "id" in group:  # a campaign instead of a group
            data = [group]
            name = ""
        else:
            data = _find_group_entries(group)
            if is_grouped and data in (None, "") and not is_whole(group, data):
                yield mark_missing(Campaign, name)
        status = "" if name.isdecimal() else name
        if not status and filtered != "all":
            status = filtered
        yield from shape_entries(Campaign, data, partial(_shape_campaign, group=status))


def _find_group_entries(group: Any) -> Any:
    """The collection in a group: its `data`, or the group itself if it holds campaigns. An empty
    group may have nothing but a count of 0."""
    if not isinstance(group, dict):
        return group
    if "data" in group:
        return group["data"]
    members = group.values()
    if is_numbered(group) or any(isinstance(item, dict) for item in members):
        return group
    has_count = group.get("count") not in (None, 0, "0")
    if not has_count and not any(map(is_full, members)):
        return []
    return first_member(group, "data") or [group]


def _shape_campaign(entry: Entry, group: str) -> Entry:
    status = group or entry.get("status")
    kind = entry.get("type")
    is_automated = isinstance(kind, str) and kind.strip().lower() == "automated"
    if isinstance(status, str) and status.strip().lower() in _AUTOMATION:
        status = "automation"
        is_automated = True
    raw = {**entry, "type": "automated" if is_automated else "standard"}
    if is_nothing(status):
        return raw
    return {**raw, "status": status}


def read_campaign(payload: Any, params: Params) -> Rows:
    """`item`: one campaign; its group is not given, its type is the one requested."""
    requested = {}
    if "type" in params:
        requested = {"type": params["type"]}
    yield from shape_entries(Campaign, as_objects(payload), known=requested)


def read_statistics(payload: Any, params: Params) -> Rows:
    """`read_campaign`: {stats: {open, unopened, bounced, unsubscribed}, clicks: [{url, message,
    clickers?}]}."""
    if not as_objects(payload):
        yield mark_missing(CampaignClicker, "campaign")
    for entry in as_objects(payload):
        if not isinstance(entry, dict):
            yield CampaignStats, entry
            continue
        campaign_id = params.get("id", entry.get("id"))
        clicks = first_member(entry, "clicks")
        yield CampaignStats, _stats_of(entry, campaign_id)
        if not is_whole(None, clicks):
            yield mark_missing(CampaignClicker, "clicks")
        yield from _merge_links(clicks, campaign_id)


def _stats_of(entry: Entry, campaign_id: Any) -> Any:
    stats = first_member(entry, "stats")
    if stats not in (None, "") and is_scalar(stats):
        return stats
    beside = {}
    for name, value in entry.items():
        is_id = name.lower() == "id" and is_scalar(value)
        if not is_id and name.lower() not in ("stats", "clicks"):
            beside[name] = value
    if stats not in (None, ""):
        return {**beside, **_shape_stats(stats, campaign_id)}
    reason = "stats: missing from the response"
    if beside:
        return Unread(entry, reason)
    return mark_missing(CampaignStats, "stats")[1]


_STATS = {
    "open": "opened",
    "opened": "opened",
    "unopened": "unopened",
    "bounced": "bounced",
    "unsubscribed": "unsubscribed",
}


def _shape_stats(stats: Any, campaign_id: Any) -> Entry:
    """Counts and percentages; the record refuses a value that is neither."""
    raw: Entry = {"campaign_id": campaign_id}
    for name, value in as_object(stats).items():
        column = _STATS.get(name.lower())
        if column is None:
            raw[name] = value
            continue
        try:
            raw[f"{column}_count"], raw[f"{column}_percent"] = read_share(value)
        except ValueError:
            raw[f"{column}_count"] = value
    return raw


@dataclass
class _Link:
    """The entries of one URL together."""

    message: Any = None
    clicks: dict[str, int] = attribute(default_factory=dict)  # by address
    unknown: Entry = attribute(default_factory=dict)
    is_whole: bool = True

    def add_entry(self, entry: Entry) -> Rows:
        """Add an entry; yields its clickers that are missing or cannot be read."""
        self.message = self.message or entry.get("message")
        for name, value in entry.items():
            if name.lower() == "clickers":  # absent if there are none (observation 25)
                yield from self._add_clickers(value)
            elif name not in ("url", "message"):
                self.unknown[name] = value

    def _add_clickers(self, clickers: Any) -> Rows:
        if not isinstance(clickers, (list, dict)):
            self.is_whole = False
            yield mark_missing(CampaignClicker, "clickers")
            if not is_nothing(clickers):
                yield CampaignClicker, Unread(clickers, "clickers: not a list")
            return
        for clicker in _list_clickers(clickers):
            if isinstance(clicker, CutEntry):
                continue
            try:
                email, count = read_clicker(clicker)
                if count:
                    self.clicks[email] = self.clicks.get(email, 0) + count
            except ValueError as error:
                self.is_whole = False
                yield CampaignClicker, Unread(clicker, str(error))

    @property
    def totals(self) -> Entry:
        if not self.is_whole:
            return {"clicker_count": None, "click_count": None}
        clickers = {normal_form(email) for email in self.clicks}
        return {"clicker_count": len(clickers), "click_count": sum(self.clicks.values())}


def _merge_links(clicks: Any, campaign_id: Any) -> Rows:
    """Links and clickers. Several entries for a URL are one link; several entries of an address on
    it are one clicker with the sum."""
    links: dict[str, _Link] = {}
    for entry in list_entries(clicks):
        url = None
        if isinstance(entry, dict):
            url = entry.get("url")
        if not isinstance(url, str):
            reason = "url: not a text" if isinstance(entry, dict) else "not an object"
            yield CampaignLink, Unread(entry, reason)
            continue
        yield from links.setdefault(url, _Link()).add_entry(entry)
    for url, link in links.items():
        place = {"campaign_id": campaign_id, "url": url}
        known = {**place, "message": link.message}
        yield CampaignLink, {**link.unknown, **known, **link.totals}
        for email, count in link.clicks.items():
            yield CampaignClicker, {**place, "email": email, "click_count": count}


def _list_clickers(clickers: Any) -> Iterator[Any]:
    """Each clicker unchanged; an object of addresses with their clicks becomes pairs."""
    if not isinstance(clickers, dict) or not clickers or is_numbered(clickers):
        yield from list_entries(clickers)
    elif any("@" in name for name in clickers):
        yield from map(list, clickers.items())
    else:
        yield clickers


AREA = Area("campaigns")
CAMPAIGNS = AREA.declare_rows("emailmarketing/campaigns", read_campaigns, Campaign)
GETCAMPAIGN = AREA.declare_rows("emailmarketing/getcampaign", read_campaign, Campaign)
STATS = AREA.declare_rows(
    "emailmarketing/stats", read_statistics, CampaignStats, CampaignLink, CampaignClicker
)
