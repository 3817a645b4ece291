"""The social marts, worked out without SQL."""

import datetime as dt
from typing import Any

from tests.warehouse.marts.expected import (
    Found,
    Source,
    added,
    grouped,
    known,
    less,
    mean,
    once,
    pick,
    row_of,
    share,
    unknown,
)
from tests.warehouse.marts.expected_reputation import days_read

_STOPS = ".,;:!?)]'"


def post_links(source: Source) -> dict[tuple[str, int, str], set[int]]:
    """(account, post, network) → links in its text: words cut at blanks and brackets, without stops."""
    urls = {(row["account"], row["short_url"]): row["link_id"] for row in source.rows("social_links")}
    found: dict[tuple[str, int, str], set[int]] = {}
    for post in source.rows("social_posts"):
        words = (post["message"] or "").replace("(", " ").split()
        ids = {urls.get((post["account"], word.rstrip(_STOPS))) for word in words} - {None}
        found[post["account"], post["post_id"], post["network"]] = ids
    return found


def _clicks_before(rows: Found, day: dt.date) -> int | None:
    """The last total at or before a day."""
    told = [row for row in rows if row["observed_on"] <= day]
    return int(max(told, key=lambda row: row["observed_on"])["click_count"]) if told else None


def social_link_performance(source: Source) -> Found:
    clicks = grouped(source.rows("social_link_clicks"), "account", "link_id")
    posts = source.by("social_posts", "account", "post_id", "network", deleted=False)
    standing = post_links(source)
    found, nights = [], grouped(source.rows("social_link_clicks"), "account")
    for link in source.rows("social_links"):
        rows = clicks.get((link["account"], link["link_id"]), [])
        last_on = max((row["observed_on"] for row in rows), default=read_completely(source, link["account"]))
        mine = [key for key, ids in standing.items() if key[0] == link["account"] and link["link_id"] in ids]
        dates = [posts[key]["scheduled_at"] for key in mine if posts[key]["scheduled_at"]]
        row = pick(link, "account link_id short_url real_url message created_at track_count")
        row |= {"observed_on": last_on, "post_count": len(mine), "first_posted_at": min(dates, default=None)}
        asked = [night["observed_on"] for night in nights.get((link["account"],), [])]
        first_on = min(asked, default=dt.date.max)
        created_on = source.local_date(link["account"], link["created_at"])
        if created_on and last_on and not dt.date(2000, 1, 1) <= created_on <= last_on:
            created_on = None
        found.append(row | _link_clicks(grouped(rows, "network"), last_on, created_on, first_on))
    return found


def read_completely(source: Source, account: str) -> dt.date | None:
    """The day of the last complete answer about links: links it does not name were not clicked."""
    is_table = {"account": account, "table_name": "social_link_clicks"}.items()
    scopes = [row for row in source.rows("sync.coverage") if is_table <= row.items()]
    if not scopes or any(is_table <= row.items() for row in source.rows("sync.rejected_records")):
        return None
    is_whole = all(row["is_complete"] for row in scopes)
    return source.local_date(account, max(row["as_of"] for row in scopes)) if is_whole else None


def _link_clicks(
    networks: dict[tuple[Any, ...], Found],
    last_on: dt.date | None,
    created_on: dt.date | None,
    first_on: dt.date,
) -> dict[str, Any]:
    if last_on is None:
        columns = "click_count click_count_7d click_count_28d clicks_per_day network_count"
        return unknown(f"{columns} top_network top_network_rate")
    totals = {network: _clicks_before(rows, last_on) or 0 for (network,), rows in networks.items()}
    total = sum(totals.values())
    clicked = {network: count for network, count in totals.items() if count}
    top = max(clicked, key=lambda network: (clicked[network], network), default=None)
    found: dict[str, Any] = {"click_count": total, "network_count": len(clicked), "top_network": top}
    found["top_network_rate"] = share(clicked[top], total) if top else None
    found["clicks_per_day"] = total / ((last_on - created_on).days + 1) if created_on else None
    for days in (7, 28):
        start = last_on - dt.timedelta(days=days)
        before = [count for rows in networks.values() if (count := _clicks_before(rows, start)) is not None]
        base = 0 if created_on and created_on > start else sum(before) if first_on <= start else None
        found[f"click_count_{days}d"] = less(total, base)
    return found


@once
def social_post_performance(source: Source) -> Found:
    details = source.by("social_post_details", "account", "post_id", "network", deleted=False)
    clicks = grouped(source.rows("social_link_clicks"), "account", "link_id", "network")
    standing = post_links(source)
    found = []
    for post in source.rows("social_posts"):
        account, network = post["account"], post["network"]
        links = standing[account, post["post_id"], network]
        detail = details.get((account, post["post_id"], network), unknown("title posted_at"))
        published_at = detail["posted_at"] or post["scheduled_at"]
        coverage = source.of(account, "sync.coverage")
        read_at = max(row["as_of"] for row in coverage if row["table_name"] == "social_posts")
        local = source.local(account, published_at)
        counts = [
            _clicks_before(clicks.get((account, link_id, network), []), dt.date.max) for link_id in links
        ]
        if read_completely(source, account):
            counts = [count or 0 for count in counts]
        others = [
            ids
            for (owner, number, place), ids in standing.items()
            if (owner, place) == (account, network) and number != post["post_id"]
        ]
        row = pick(post, "account post_id network channel_name channel_type message")
        row |= {"title": detail["title"], "published_at": published_at}
        row["is_published"] = published_at <= read_at if published_at else None
        row |= {"weekday": f"{local:%A}", "hour": local.hour} if local else unknown("weekday hour")
        row |= {"has_photo": post["photo_url"] is not None, "link_count": len(links)}
        row["click_count"] = added(*counts) if links else None
        found.append(row | {"is_link_shared": any(links & ids for ids in others)})
    return found


def link_changes(source: Source) -> Found:
    """Clicks of each link and network since its last total; of a later one, since the night before."""
    rows = source.rows("social_link_clicks")
    nights = {
        account: sorted({row["observed_on"] for row in some})
        for (account,), some in grouped(rows, "account").items()
    }
    found = []
    for (account, _, network), some in grouped(rows, "account", "link_id", "network").items():
        last: int | None = None
        last_on: dt.date | None = None
        for row in sorted(some, key=lambda row: row["observed_on"]):
            place = nights[account].index(row["observed_on"])
            base = last if last is not None else 0 if place else None
            since = last_on or (nights[account][place - 1] if place else None)
            change = less(row["click_count"], base)
            days = (row["observed_on"] - since).days if since else None
            columns = "account network day_on change days_covered"
            found.append(row_of(columns, account, network, row["observed_on"], change, days))
            last, last_on = row["click_count"], row["observed_on"]
    return found


@once
def social_daily(source: Source) -> Found:
    stats = source.by("social_media_stats", "account", "network", "period_on", deleted=False)
    mentions = {key: row["mention_count"] for key, row in stats.items()}
    posts: dict[tuple[Any, ...], int] = {}
    for post in social_post_performance(source):
        if post["is_published"]:
            key = (post["account"], post["network"], source.local_date(post["account"], post["published_at"]))
            posts[key] = posts.get(key, 0) + 1
    clicks = grouped(link_changes(source), "account", "network", "day_on")
    found, read = [], days_read(source)
    clicked = [key for key, rows in clicks.items() if known(rows, "change")]
    for key in {**mentions, **posts, **dict.fromkeys(clicked)}:
        account, network, day = key
        if not source.is_plausible(account, day):
            continue
        told, spans = (known(clicks.get(key, []), name) for name in ("change", "days_covered"))
        row = row_of("account network day_on mention_count", *key, mentions.get(key))
        is_read = read.get((account, "social_posts"), {}).get(day)
        row |= {"post_count": posts.get(key, 0) if is_read else None}
        row |= {"click_change": sum(told) if told else None, "click_days_covered": max(spans, default=None)}
        for days in (7, 28):
            window = [mentions.get((account, network, day - dt.timedelta(days=back))) for back in range(days)]
            row[f"mention_count_mean_{days}d"] = mean(window)
        if any(row[name] is not None for name in ("mention_count", "post_count", "click_change")):
            found.append(row)
    return found
