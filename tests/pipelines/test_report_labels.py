"""Every label of the report against its number: the rendered page is parsed, however it was drawn, and held
against the marts' rows."""

from __future__ import annotations

import datetime as dt
import random
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any
from xml.etree import ElementTree

import pytest

from home.formatting import UNKNOWN
from pipelines.report.queries import AccountData
from tests.pipelines.test_report import FULL, NOW, TODAY, account, campaign, page

_NUMBER = re.compile(r"^([+−±-]?)([\d,]+(?:\.\d+)?)( %| pts)?$")
_SVG = "{http://www.w3.org/2000/svg}"


def number(shown: str) -> tuple[float, float]:
    """The value that a text shows, shares as such, and how far it may be rounded."""
    found = _NUMBER.match(shown)
    assert found, f"{shown!r} is no number"
    text, scale = found[2].replace(",", ""), 100 if found[3] else 1
    digits = len(text.partition(".")[2])
    return (-1 if found[1] in "−-" and found[1] else 1) * float(text) / scale, 0.5000001 * 10**-digits / scale


def is_shown(shown: str, value: float | None) -> bool:
    """Whether the text is the value: a dash for what is not known, else the value to its last digit."""
    if value is None or shown == UNKNOWN:
        return value is None and shown == UNKNOWN
    read, rounding = number(shown)
    return abs(read - value) <= rounding


@dataclass(frozen=True)
class Picture:
    """One chart of the page."""

    title: str
    svg: ElementTree.Element

    def texts(self, look: str) -> list[tuple[float, float, str]]:
        """(x, y, text)."""
        found = [part for part in self.svg.iter(f"{_SVG}text") if look in part.get("class", "")]
        return [(float(part.get("x", 0)), float(part.get("y", 0)), part.text or "") for part in found]

    def boxes(self, look: str) -> list[tuple[float, float, float, float]]:
        """(x, y, width, height)."""
        found = [part for part in self.svg.iter(f"{_SVG}rect") if look in part.get("class", "")]
        return [tuple(float(part.get(name, 0)) for name in ("x", "y", "width", "height")) for part in found]  # type: ignore[misc]

    @cached_property
    def ticks(self) -> list[tuple[float, float, str]]:
        return [(x, y, text) for x, y, text in self.texts("axis") if _NUMBER.match(text)]

    @property
    def width(self) -> float:
        return float(self.svg.get("viewBox", "").split()[2])


def pictures(html: str) -> Iterator[Picture]:
    for figure in re.findall(r"<figure.*?</figure>", html, re.DOTALL):
        title = re.search(r"<figcaption[^>]*>(.*?)</figcaption>", figure, re.DOTALL)
        svg = re.search(r"<svg.*?</svg>", figure, re.DOTALL)
        assert svg
        yield Picture(title[1] if title else "", ElementTree.fromstring(svg[0]))


def plain(html: str) -> str:
    import html as entities

    return " ".join(entities.unescape(re.sub(r"<[^>]+>", " ", html)).split())


def section(html: str, name: str) -> str:
    found = re.search(rf'<section><h2[^>]*id="main-{name}".*?</section>', html, re.DOTALL)
    assert found, name
    return found[0]


def tables(html: str) -> list[list[dict[str, str]]]:
    """Rows of each table, by heading."""
    found = []
    for table in re.findall(r"<table.*?</table>", html, re.DOTALL):
        head, body = table.split("<tbody", 1)
        names = [plain(cell) for cell in re.findall(r"<th[^>]*>(.*?)</th>", head, re.DOTALL)]
        cells = [
            re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row, re.DOTALL)
            for row in re.findall(r"<tr.*?</tr>", body, re.DOTALL)
        ]
        found.append([dict(zip(names, map(plain, row), strict=True)) for row in cells])
    return found


# -- made-up accounts: ordinary, tiny, huge, with gaps, of one row, of none


def made(seed: int, rows: int, size: int, *, gaps: float = 0.0) -> AccountData:
    draw = random.Random(seed)

    def count() -> int | None:
        return None if draw.random() < gaps else draw.randint(0, size)

    def share() -> float | None:
        return (
            None
            if draw.random() < gaps
            else draw.choice([0.0, 1.0, 0.003, draw.random(), draw.random() / 10])
        )

    names = [name for name in FULL["days"][0] if name not in ("day_on", "member_count")]
    channels = [
        {
            **FULL["channels"][0],
            **{
                "channel": f"Site {place}",
                "average_rating": draw.choice([None, 5.0, 1.04, 5 * draw.random()]),
                "review_count": draw.randint(0, 9),
            },
            **{
                "review_count_28d": draw.randint(0, 9),
                "good_rate_28d": share(),
                "positive_rate_28d": share(),
            },
        }
        for place in range(rows)
    ]
    coupons = []
    for place in range(rows):
        issued = draw.randint(1, max(size, 1))
        redeemed = draw.randint(0, issued)
        month = {
            "issued_month": f"2026-{place % 12 + 1:02}",
            "issued_count": issued,
            "redeemed_count": redeemed,
        }
        coupons.append(
            {**month, "redemption_rate": redeemed / issued, "median_days_to_redeem": draw.choice([None, 2.5])}
        )
    days = [
        {
            "day_on": TODAY - dt.timedelta(days=back),
            "member_count": draw.randint(0, size),
            **{name: count() for name in names},
        }
        for back in reversed(range(rows * 5))
    ]
    mails = [
        campaign(
            f"Campaign {place}",
            open_rate=share(),
            click_rate=share(),
            unsubscribe_rate=share(),
            sent_count=draw.randint(1, size + 1),
            open_rate_over_median=None if draw.random() < 0.2 else draw.random() - 0.5,
            type=draw.choice(["standard", "automated"]),
        )
        for place in range(rows)
    ]
    tiers = [
        {"engagement_tier": tier, "addresses": draw.randint(0, size) + 1, "without_timeline": 0}
        for tier in ("engaged", "quiet")[:rows]
    ]
    lists = [
        {
            "name": f"L{at}",
            "size": draw.randint(1, size + 1),
            "joined_7d": count(),
            "left_7d": count(),
            "moved_7d": count(),
            "net_7d": None,
        }
        for at in range(rows)
    ]
    months = [
        {
            "begins_on": dt.date(2026 - at // 12, 12 - at % 12, 1),
            "is_over": at > 0,
            "open_rate": share(),
            "click_rate": share(),
        }
        | {
            name: count()
            for name in (
                "sent_count",
                "joined_count",
                "online_review_count",
                "average_rating",
                "redeemed_count",
            )
        }
        for at in range(rows)
    ]
    networks = [{"network": f"n{at}", "mention_count": count(), "post_count": count()} for at in range(rows)]
    read = {**FULL["freshness"][0], "is_overdue": False}
    freshness = [{**read, "subject": f"s{at}", "coverage_rate": share() or 0.0} for at in range(rows)]
    return account(
        **{"campaigns": mails, "days": days, "tiers": tiers, "channels": channels, "coupons": coupons},
        **{"months": months, "lists": lists, "networks": networks, "freshness": freshness},
    )


ACCOUNTS = {
    "ordinary": made(1, 12, 40),
    "few": made(2, 3, 3),
    "tiny counts": made(3, 20, 1),
    "huge": made(4, 15, 9_000_000),
    "gaps": made(5, 20, 30, gaps=0.1),
    "one row": made(6, 1, 5),
    "zeros": made(7, 8, 0),
    "empty": account(),
    "full": account(**FULL),
}
EVERY = pytest.mark.parametrize("data", ACCOUNTS.values(), ids=ACCOUNTS)


@EVERY
def test_every_tick_stands_where_its_label_says(data: AccountData) -> None:
    for picture in pictures(page(data)):
        if len(picture.ticks) < 2:
            assert not picture.title, (
                f"{picture.title} has no scale"
            )  # but the one bar of shares, whose table is below it
            continue
        across = len({y for _, y, _ in picture.ticks}) == 1
        places = [x if across else -y for x, y, _ in picture.ticks]
        values = [number(text)[0] for *_, text in picture.ticks]
        if not across:  # below the axis counts go down, and are counts all the same
            zero = (
                next(place for place, value in zip(places, values, strict=True) if value == 0)
                if 0 in values
                else min(places)
            )
            values = [value if place >= zero else -value for place, value in zip(places, values, strict=True)]
        (low, first), *_, (high, last) = sorted(zip(places, values, strict=True))
        assert last > first
        for place, value in zip(places, values, strict=True):
            assert abs(low + (value - first) / (last - first) * (high - low) - place) < 0.2, (
                f"{picture.title}: {values} at {places}"
            )
        assert len(set(values)) == len(values)


@EVERY
def test_every_bar_is_as_long_as_its_number_on_the_stated_scale(data: AccountData) -> None:
    html = page(data)
    truth = {
        "Opened, share of delivered messages": [row["open_rate"] for row in data.rows["campaigns"][:10]],
        "Clicked, share of delivered messages": [row["click_rate"] for row in data.rows["campaigns"][:10]],
        "Average rating on review sites, of 5": [
            row["average_rating"] for row in data.rows["channels"] if row["average_rating"] is not None
        ],
    }
    for picture in pictures(html):
        if picture.title not in truth:
            continue
        top = max(number(text)[0] for *_, text in picture.ticks)
        shown = sorted((y, text) for x, y, text in picture.texts("ink") if x == picture.width)
        wanted = truth[picture.title]
        assert all(is_shown(text, value) for (_, text), value in zip(shown, wanted, strict=True))
        drawn = {y - 6: width for _, y, width, _ in picture.boxes("accent")}
        for (y, _), value in zip(shown, wanted, strict=True):
            assert abs(drawn.get(y, 0) - (value or 0) / top * picture.width) <= 1, picture.title
        assert not picture.boxes("second"), "a track would be another scale"


@EVERY
def test_every_week_is_as_high_as_its_days_and_missing_where_one_is_not_known(data: AccountData) -> None:
    chosen = {
        "Good and bad reviews on the feedback page, by week": ("good_count", "bad_count"),
        "Contacts that joined and left, by week": ("joined_count", "left_count"),
    }
    for picture in pictures(page(data)):
        if picture.title not in chosen:
            continue
        up, down = chosen[picture.title]
        days = {row["day_on"]: row for row in data.rows["days"]}
        weeks = [
            [days.get(TODAY - dt.timedelta(days=7 * back + number)) for number in range(7)]
            for back in reversed(range(13))
        ]
        heights = [y for _, y, _ in picture.ticks]
        span = max(number(text)[0] for *_, text in picture.ticks if text) if picture.ticks else 0
        zero = next(y for _, y, text in picture.ticks if number(text)[0] == 0)
        scale = max(abs(y - zero) for y in heights) / span
        for look, name in (("accent", up), ("second", down)):
            whole = [
                [day[name] for day in week if day]
                for week in weeks
                if all(day and day[name] is not None for day in week)
            ]
            drawn = [height / scale for *_, height in picture.boxes(look)]
            assert drawn == pytest.approx([sum(week) for week in whole if sum(week)], abs=0.2 / scale)


@EVERY
def test_a_heading_counts_what_is_below_it(data: AccountData) -> None:
    html = page(data)
    part = section(html, "campaigns")
    if found := re.search(r"The (\d+) newest campaigns", plain(part)):
        assert [len(table) for table in tables(part)] == [int(found[1])]
        for picture in pictures(part):
            assert len([1 for x, *_ in picture.texts("ink") if x == 0]) == int(found[1]), (
                "drawn and listed are the same"
            )
    part = section(html, "data")
    if found := re.search(r"(\d+) of (\d+) kinds?", plain(part)):
        assert int(found[2]) == len(data.rows["freshness"])
        assert int(found[2]) - int(found[1]) == sum(
            row["coverage_rate"] < 1 for row in data.rows["freshness"]
        )


def _columns(data: AccountData) -> Iterator[tuple[str, int, list[dict[str, Any]], dict[str, str]]]:
    """(section, its table, the mart's rows, heading → column)."""
    yield "campaigns", 0, list(data.rows["campaigns"][:10]), {
        "Sent": "sent_count", "Opened": "open_rate", "Clicked": "click_rate", "Unsubscribed": "unsubscribe_rate",
        "Against usual": "open_rate_over_median",
    }  # fmt: skip
    yield "reputation", 0, list(data.rows["channels"]), {
        "Rating": "average_rating", "Change, 28 days": "average_rating_change_28d", "Reviews, 28 days": "review_count_28d",
        "Good reviews, 28 days": "good_rate_28d", "Positive mentions, 28 days": "positive_rate_28d",
    }  # fmt: skip
    yield "months", 0, list(data.rows["months"]), {
        "Sent": "sent_count", "Opened": "open_rate", "Clicked": "click_rate", "Joined": "joined_count",
        "Reviews": "online_review_count", "Rating": "average_rating", "Coupons redeemed": "redeemed_count",
    }  # fmt: skip
    yield (
        "growth",
        0,
        list(data.rows["lists"]),
        {
            "Contacts": "size",
            "Joined, 7 days": "joined_7d",
            "Left, 7 days": "left_7d",
            "Moved, 7 days": "moved_7d",
            "Net, 7 days": "net_7d",
        },
    )
    yield (
        "social",
        0,
        list(data.rows["networks"]),
        {"Mentions, 28 days": "mention_count", "Posts, 28 days": "post_count"},
    )
    yield (
        "coupons",
        0,
        list(data.rows["coupons"][:6]),
        {"Issued": "issued_count", "Redeemed": "redeemed_count", "Share": "redemption_rate"},
    )
    lacking = [row for row in data.rows["freshness"] if row["coverage_rate"] < 1]
    yield "data", 0, lacking, {"Read": "coverage_rate", "Not readable": "rejected_count"}


@EVERY
def test_every_cell_is_the_mart_s_number_and_a_dash_is_null(data: AccountData) -> None:
    html = page(data)
    for name, place, rows, columns in _columns(data):
        found = tables(section(html, name))
        if not rows or not found:
            continue
        for shown, row in zip(found[place], rows, strict=True):
            for heading, column in columns.items():
                assert is_shown(shown[heading], row[column]), (
                    f"{name}: {heading} shows {shown[heading]} for {row[column]}"
                )


@EVERY
def test_what_is_shown_twice_is_shown_equally(data: AccountData) -> None:
    html = page(data)
    drawn = {
        picture.title: [
            text
            for x, _, text in sorted(picture.texts("ink"), key=lambda text: text[1])
            if x == picture.width
        ]
        for picture in pictures(html)
    }
    listed = {
        name: (tables(section(html, name)) or [[]])[0] for name in ("campaigns", "reputation", "changes")
    }
    for title, name, heading in (
        ("Opened, share of delivered messages", "campaigns", "Opened"),
        ("Clicked, share of delivered messages", "campaigns", "Clicked"),
        ("Average rating on review sites, of 5", "reputation", "Rating"),
    ):
        in_table = [row[heading] for row in listed[name] if name == "campaigns" or row[heading] != UNKNOWN]
        assert drawn.get(title, []) == (in_table if title in drawn else [])
    figures = re.search(r"Coupons redeemed (\S+(?: %)?) ", plain(html))
    assert figures
    if "Coupons of all time" in drawn:
        assert drawn["Coupons of all time"][1].split(", ")[-1] == figures[1]
    shares = [
        row["Share"] for table in tables(section(html, "engagement")) for row in table if "Share" in row
    ]
    total = sum(row["addresses"] for row in data.rows["tiers"])
    for shown, tier in zip(shares, ("engaged", "new", "cooling", "quiet"), strict=False):
        assert is_shown(
            shown,
            sum(row["addresses"] for row in data.rows["tiers"] if row["engagement_tier"] == tier) / total,
        )


def test_a_day_that_is_not_known_is_no_zero() -> None:
    known = {"day_on": TODAY, "good_count": 1}
    days = [
        {**FULL["days"][0], **known, "day_on": TODAY - dt.timedelta(days=back), "member_count": 1}
        for back in range(20)
    ]
    days[1]["good_count"] = None
    (changed,) = tables(section(page(account(**FULL | {"days": days})), "changes"))
    (good,) = [row for row in changed if row["What"] == "Good reviews"]
    assert (good["Yesterday"], good["Last 7 days"], good["7 days before"]) == (UNKNOWN, UNKNOWN, "7")


@pytest.mark.parametrize(("hours", "is_said"), [(1, False), (29.9, False), (30.1, True), (24 * 40, True)])
def test_a_report_of_a_pipeline_that_stands_still_says_so_first(hours: float, is_said: bool) -> None:
    data = account(**FULL)
    late = AccountData(
        data.name, data.as_of, data.today, data.zone, data.rows, NOW + dt.timedelta(hours=hours)
    )
    assert ("Syncing has stopped." in plain(page(late)).split("Reachable people")[0]) is is_said
    assert "current until 21 Mar, 09:30" in plain(page(late)), "who opens it later can tell"
