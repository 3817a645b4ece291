"""The rows that every `source` table must hold after one complete sync of the account, from the account
alone.

Belongs here: what section 6 of the design makes of the account's plain values. It never looks at an answer on
the wire. Freedom that the design leaves is expressed as `optional` rows (may be there, must then be right),
as OneOf values, and by the column kinds of `schema`."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from .account import Account, Campaign, Goal
from .generate import HISTORY_START
from .schema import TABLES
from .variants import Variants

Row = dict[str, Any]
STATUS_WORDS = {0: "unconfirmed", 1: "active", 2: "unsubscribed", 3: "bounced"}  # row 18


@dataclass(frozen=True)
class OneOf:
    """Any of these will do."""

    values: tuple[Any, ...]


@dataclass
class Expected:
    rows: list[Row] = field(default_factory=list)
    optional: list[Row] = field(default_factory=list)
    #: Computes the rows from the ranges that the table itself names, where the ranges are the tool's own
    #: choice.
    derive: Callable[[list[Row]], list[Row]] | None = None


@dataclass
class Case:
    """One account as one service shows it: what the comparison needs (and a failing run is saved as)."""

    account: Account
    variants: Variants

    @property
    def down(self) -> frozenset[str]:
        return self.variants.missing | self.variants.broken

    def sees(self, column_holder: str) -> bool:
        """Whether fields outside the thin listings can be read: `column_holder` is the detail operation."""
        return not self.variants.thin_listings or column_holder not in self.down

    def asked_on(self) -> set[dt.date]:
        """The account's local dates on which a run that began after the account was drawn can have asked."""
        return {self.account.today, dt.datetime.now(dt.UTC).astimezone(self.account.zone).date()}


Rows = Callable[[Case], Iterator[Row]]
_ROWS: dict[str, Rows] = {}
_OPTIONAL: dict[str, Rows] = {}


def table(name: str, *, optional: bool = False) -> Callable[[Rows], Rows]:
    def register(function: Rows) -> Rows:
        (_OPTIONAL if optional else _ROWS)[name] = function
        return function

    return register


def expected(case: Case) -> dict[str, Expected]:
    """Every table of the schema with its rows; a table whose operations are down is empty."""
    found = {}
    for name, spec in TABLES.items():
        if case.down & set(spec.needs):
            found[name] = Expected(optional=list(_rescued(case)) if name == "goals" else [])
            continue
        optional = list(_OPTIONAL[name](case)) if name in _OPTIONAL else []
        found[name] = Expected(list(_ROWS[name](case)) if name in _ROWS else [], optional)
    if "reputation/sentiment" not in case.down:
        found["sentiment_totals"].derive = lambda actual: _totals(case, actual)
    return found


@table("business")
def _business(case: Case) -> Iterator[Row]:
    mine = case.account.business
    yield {
        "business_id": mine.business_id,
        "business_name": mine.name,
        "contact_name": mine.contact,
        "phone_number": mine.phone,
        "service_name": mine.service_name,
        "package": mine.package,
        "timezone": case.account.zone_name,
    }


# --- reputation


@table("direct_reviews")
def _direct_reviews(case: Case) -> Iterator[Row]:
    for r in case.account.direct_reviews:
        texts = {
            "email": r.email,
            "phone": r.phone,
            "inquiry": r.inquiry,
            "notes": r.notes,
            "rating": r.rating,
        }
        yield {"review_id": r.review_id, "reviewed_at": r.at, **texts}


@table("online_reviews")
def _online_reviews(case: Case) -> Iterator[Row]:
    for channel in case.account.channels:
        for r in channel.reviews or []:
            said = {"username": r.username, "inquiry": r.inquiry, "source_url": r.url}
            yield {
                "channel": channel.name,
                "reviewed_at": r.at,
                "rating": r.rating,
                "rating_raw": r.rating_raw,
                **said,
            }


@table("online_review_channels")
def _online_review_channels(case: Case) -> Iterator[Row]:
    for channel in case.account.channels:
        # A site without `data` has no reviews or does not tell: the design does not say which.
        count = OneOf((0, None)) if channel.reviews is None else len(channel.reviews)
        yield {
            "channel": channel.name,
            "observed_on": "asked",
            "average_rating": channel.average,
            "review_count": count,
        }


@table("sentiment_mentions")
def _sentiment_mentions(case: Case) -> Iterator[Row]:
    for m in case.account.mentions:
        yield {"polarity": m.polarity, "channel": m.channel, "reviewed_on": m.on, "inquiry": m.inquiry}


def _totals(case: Case, actual: list[Row]) -> list[Row]:
    """Right for any ranges; together they must reach from the start of the history to today."""
    rows, reached = [], HISTORY_START
    for first, last in sorted({(row["from_on"], row["to_on"]) for row in actual}):
        inside = [mention.polarity for mention in case.account.mentions if first <= mention.on <= last]
        rows.append(
            {
                "from_on": first,
                "to_on": last,
                "positive_count": inside.count("positive"),
                "negative_count": inside.count("negative"),
            }
        )
        reached = max(reached, last + dt.timedelta(days=1)) if first <= reached else reached
    if reached <= case.account.today:
        rows.append(
            {"from_on": reached, "to_on": case.account.today, "positive_count": None, "negative_count": None}
        )
    return rows


@table("review_stats")
def _review_stats(case: Case) -> Iterator[Row]:
    for day in case.account.days:
        if day.good_bad:
            yield {"period_on": day.on, "good_count": day.good_bad[0], "bad_count": day.good_bad[1]}


def _network_days(case: Case, *, zero: bool) -> Iterator[Row]:
    for day in case.account.days:
        for network, count in (day.mentions or {}).items():
            if (count == 0) == zero:
                yield {"period_on": day.on, "network": network, "mention_count": count}


@table("social_media_stats")
def _social_media_stats(case: Case) -> Iterator[Row]:
    return _network_days(case, zero=False)


@table("social_media_stats", optional=True)
def _silent_networks(case: Case) -> Iterator[Row]:
    """The design does not say whether a counter of 0 is a row."""
    return _network_days(case, zero=True)


@table("feedback_views")
def _feedback_views(case: Case) -> Iterator[Row]:
    for day in case.account.days:
        if day.views is not None:
            yield {"period_on": day.on, "view_count": day.views}


# --- social media


@table("social_profiles")
def _social_profiles(case: Case) -> Iterator[Row]:
    for p in case.account.profiles:
        names = {"name": p.name, "screen_name": p.screen_name, "full_name": p.full_name}
        yield {"network": p.network.lower(), "kind": p.kind, "profile_id": p.profile_id, **names}


@table("social_posts")
def _social_posts(case: Case) -> Iterator[Row]:
    for p in case.account.posts:
        channel = {"channel_type": p.kind, "channel_id": p.channel_id, "channel_name": p.channel_name}
        thumb, photo = p.photo or (None, None)
        yield {
            "post_id": p.post_id,
            "network": p.network,
            "scheduled_at": p.at,
            "message": p.message,
            "photo_thumb_url": thumb,
            "photo_url": photo,
            **channel,
        }


def _details(case: Case, *, askable: bool) -> Iterator[Row]:
    for p in case.account.posts:
        if (p.network in ("facebook", "twitter", "linkedin")) == askable:
            texts = {
                "title": p.title,
                "uid": p.uid,
                "type": p.network,
                "image_url": p.image,
                "profile": p.profile,
            }
            yield {"post_id": p.post_id, "network": p.network, "posted_at": p.at, **texts}


@table("social_post_details")
def _social_post_details(case: Case) -> Iterator[Row]:
    return _details(case, askable=True)


@table("social_post_details", optional=True)
def _details_of_other_networks(case: Case) -> Iterator[Row]:
    """getpost is specified for three networks; asking it for others is allowed, not required."""
    return _details(case, askable=False)


@table("social_links")
def _social_links(case: Case) -> Iterator[Row]:
    for link in case.account.links:
        urls = {"short_url": link.short_url, "real_url": link.real_url}
        yield {
            "link_id": link.link_id,
            "message": link.message,
            "created_at": link.at,
            "track_count": link.tracks,
            **urls,
        }


@table("social_link_clicks")
def _social_link_clicks(case: Case) -> Iterator[Row]:
    for link in case.account.links:
        for network, count in link.clicks.items():
            yield {"link_id": link.link_id, "network": network, "observed_on": "asked", "click_count": count}


# --- campaigns


@table("campaigns")
def _campaigns(case: Case) -> Iterator[Row]:
    whole = case.sees("emailmarketing/getcampaign")
    for c in case.account.campaigns:
        texts = {
            "message": c.message,
            "reply_to": c.reply_to,
            "from_email": c.from_email,
            "from_name": c.from_name,
        }
        known = {
            "campaign_id": c.campaign_id,
            "status": c.group,
            "type": c.type,
            "subject": c.subject,
            "created_at": c.at,
        }
        yield known | {name: text if whole else None for name, text in texts.items()}


def _stats_of(campaign: Campaign) -> Row:
    names = {"open": "opened", "unopened": "unopened", "bounced": "bounced", "unsubscribed": "unsubscribed"}
    counts = {f"{names[name]}_count": count for name, (count, _) in campaign.stats.items()}
    shares = {f"{names[name]}_percent": float(percent) for name, (_, percent) in campaign.stats.items()}
    return {"campaign_id": campaign.campaign_id, "observed_on": "asked", **counts, **shares}


@table("campaign_stats")
def _campaign_stats(case: Case) -> Iterator[Row]:
    yield from (
        _stats_of(campaign) for campaign in case.account.campaigns if campaign.group in ("Sent", "Automation")
    )


@table("campaign_stats", optional=True)
def _stats_of_unsent(case: Case) -> Iterator[Row]:
    """Nothing has happened to a draft: asking costs a request, so a tool may leave it."""
    yield from (
        _stats_of(campaign) for campaign in case.account.campaigns if campaign.group in ("Draft", "Scheduled")
    )


def _per_link(campaign: Campaign) -> dict[str, dict[str, int]]:
    """link -> address -> clicks, summed over the link's entries."""
    links: dict[str, dict[str, int]] = {}
    for entry in campaign.clicks:
        people = links.setdefault(entry.url, {})
        for who, count in entry.clickers:
            people[who] = people.get(who, 0) + count
    return links


@table("campaign_links")
def _campaign_links(case: Case) -> Iterator[Row]:
    """One row per link: distinct addresses and the sum of their clicks; any entry's message will do."""
    for campaign in case.account.campaigns:
        for url, people in _per_link(campaign).items():
            said = OneOf(tuple(entry.message for entry in campaign.clicks if entry.url == url))
            counts = {"clicker_count": len(people), "click_count": sum(people.values())}
            yield {
                "campaign_id": campaign.campaign_id,
                "url": url,
                "observed_on": "asked",
                "message": said,
                **counts,
            }


@table("campaign_clickers")
def _campaign_clickers(case: Case) -> Iterator[Row]:
    for campaign in case.account.campaigns:
        for url, people in _per_link(campaign).items():
            for who, count in people.items():
                yield {"campaign_id": campaign.campaign_id, "url": url, "email": who, "click_count": count}


# --- lists and contacts


@table("lists")
def _lists(case: Case) -> Iterator[Row]:
    whole = case.sees("emailmarketing/getlist")
    for each in case.account.lists:
        others: Row = {**each.texts, "is_double_opt_in": each.double_opt_in, "created_at": each.at}
        others = others if whole else dict.fromkeys(others)
        yield {**others, "list_id": each.list_id, "name": each.texts["name"]}


@table("list_fields")
def _list_fields(case: Case) -> Iterator[Row]:
    if case.variants.fields_in_getlists or "emailmarketing/getlist" not in case.down:
        for each in case.account.lists:
            for field_id, label in each.labels.items():
                yield {"list_id": each.list_id, "field_id": field_id, "label": label}


@table("audiences")
def _audiences(case: Case) -> Iterator[Row]:
    for audience_id, name in case.account.audiences.items():
        yield {"audience_id": audience_id, "name": name}


@table("contacts")
def _contacts(case: Case) -> Iterator[Row]:
    shows_fields = case.variants.custom_fields != "none"
    for m in case.account.members:
        # A code that nobody documented has no word; its number must survive.
        word = STATUS_WORDS.get(m.status, OneOf((None, str(m.status), "unknown")))
        identity = {"list_id": m.list_id, "contact_id": m.contact_id, "email": m.email, "registered_at": m.at}
        yield {
            **identity,
            "status": word,
            "status_code": m.status,
            "custom_fields": m.fields if shows_fields else {},
        }


@table("timeline_events")
def _timeline_events(case: Case) -> Iterator[Row]:
    for contact, line in _shown_timelines(case):
        for e in line.events[: case.variants.timeline_cut]:
            details = [{"key": key, "label": label, "value": value} for key, label, value in e.details]
            yield {
                "contact_id": contact,
                "key": e.key,
                "snippet": e.snippet,
                "occurred_at": e.at,
                "details": details,
            }


def _shown_timelines(case: Case) -> Iterator[tuple[int, Any]]:
    for contact in {member.contact_id for member in case.account.members}:
        yield contact, case.account.timelines[contact]


@table("timeline_visits")
def _timeline_visits(case: Case) -> Iterator[Row]:
    for contact, line in _shown_timelines(case):
        for v in line.visits:
            utm = {
                f"utm_{name}": v.utm.get(name) for name in ("campaign", "source", "medium", "term", "content")
            }
            yield {"contact_id": contact, "link": v.link, "visited_at": v.at, **utm}


@table("timeline_automations")
def _timeline_automations(case: Case) -> Iterator[Row]:
    for contact, line in _shown_timelines(case):
        for a in line.automations:
            details = [{"key": key, "value": value} for key, value in a.details]
            yield {
                "contact_id": contact,
                "name": a.name,
                "type": a.type,
                "triggered_at": a.at,
                "details": details,
            }


@table("coupons")
def _coupons(case: Case) -> Iterator[Row]:
    addresses = {member.email.lower() for member in case.account.members}
    for c in case.account.coupons:
        if c.email.lower() in addresses:
            on = c.redeemed_at.astimezone(case.account.zone).date() if c.redeemed_at else None
            flags = {"is_redeemed": c.redeemed, "redeemed_on": on}
            yield {"coupon_id": c.coupon_id, "email": c.email, "coupon_code": c.code, **flags}


# --- users, goals, webhooks


@table("users")
def _users(case: Case) -> Iterator[Row]:
    for u in case.account.users:
        names = {"full_name": u.full_name, "username": u.username, "user_group": u.group, "status": u.status}
        yield {"business_id": u.business_id, "user_id": u.user_id, **names}


@table("managers")
def _managers(case: Case) -> Iterator[Row]:
    for m in case.account.managers:
        yield {"manager_id": m.manager_id, "full_name": m.full_name, "email": m.email, "status": m.status}


@table("user_groups")
def _user_groups(case: Case) -> Iterator[Row]:
    for group in case.account.groups:
        yield {"group_id": group.group_id, "name": group.name, "status": group.status}


@table("goals")
def _goals(case: Case) -> Iterator[Row]:
    domains = _named_domains(case)
    for goal in case.account.goals:
        yield _goal(case, goal, goal.domain_id if goal.domain_id in domains else None)


def _rescued(case: Case) -> Iterator[Row]:
    """goal/lists is down: goals that listbydomain gives may be kept, or left until it is back."""
    if "goal/lists" in case.down:
        domains = _named_domains(case)
        yield from (
            _goal(case, goal, goal.domain_id) for goal in case.account.goals if goal.domain_id in domains
        )


def _named_domains(case: Case) -> set[int | None]:
    """The domains that webhooks name, as far as their listing (or, when thin, the detail) is readable."""
    if {"webhook/lists", "goal/listbydomain"} & case.down or not case.sees("webhook/show"):
        return set()
    return {hook.domain_id for hook in case.account.webhooks}


def _goal(case: Case, goal: Goal, domain: int | None) -> Row:
    others: Row = {
        "value_type": goal.value_type,
        "value": goal.value,
        "event_type": goal.event_type,
        "event_link_rule": goal.rule,
    }
    action_id, action_name = goal.action or (None, None)
    others |= {
        "links": goal.links,
        "has_action": goal.action is not None,
        "action_id": action_id,
        "action_name": action_name,
    }
    others = others if case.sees("goal/show") else dict.fromkeys(others)
    return {"goal_id": goal.goal_id, "domain_id": domain, "name": goal.name, "type": goal.type, **others}


@table("webhooks")
def _webhooks(case: Case) -> Iterator[Row]:
    whole = case.sees("webhook/show")
    for h in case.account.webhooks:
        hours, minutes, seconds = h.delay
        others: Row = {
            "domain_id": h.domain_id,
            "url_filter": h.url_filter,
            "url_link": h.url_link,
            "action_type": h.action_type,
            "execute_for": h.execute_for,
            "device_filter": h.device_filter,
            "repeat_interval": h.interval,
            "delay_seconds": hours * 3600 + minutes * 60 + seconds,
            "action_style": h.style,
        }
        yield {
            "webhook_id": h.webhook_id,
            "name": h.name,
            "type": h.type,
            **(others if whole else dict.fromkeys(others)),
        }
