"""Every label of the report against its number: the rendered page is parsed, however it was drawn, and held
against the marts' rows."""

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
from report.queries import AccountData
from tests.report.sample_accounts import FULL, NOW, TODAY, account, campaign, page

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
    """Empty where the section is left out."""
    found = re.search(rf'<section aria-labelledby="main-{name}">.*?</section>', html, re.DOTALL)
    return found[0] if found else ""


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

    names = [
        name for name in FULL["days"][0] if name not in ("day_on", "member_count", "active_member_count")
    ]
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
            "begins_on": dt.date(2026, place % 12 + 1, 1),
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
            "active_member_count": draw.randint(0, size),
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
            "active_size": count(),
            "joined_count": count(),
            "left_count": count(),
            "moved_count": count(),
        }
        for at in range(rows)
    ]
    months = [
        {
            "begins_on": dt.date(2026 - at // 12, 12 - at % 12, 1),
            "is_over": at > 0,
            "campaign_count": 1,
            "opened_count": count(),
            "clicker_count": count(),
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
                "rating_count",
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
    wanted = [row["average_rating"] for row in data.rows["channels"] if row["average_rating"] is not None]
    for picture in pictures(page(data)):
        if picture.title != "Average rating as each site states it, of 5":
            continue
        top = max(number(text)[0] for *_, text in picture.ticks)
        shown = sorted((y, text) for x, y, text in picture.texts("ink") if x == picture.width)
        assert all(is_shown(text, value) for (_, text), value in zip(shown, wanted, strict=True))
        drawn = {y - 6: width for _, y, width, _ in picture.boxes("accent")}
        for (y, _), value in zip(shown, wanted, strict=True):
            assert abs(drawn.get(y, 0) - (value or 0) / top * picture.width) <= 1, picture.title
        assert not picture.boxes("second"), "a track would be another scale"


@EVERY
def test_every_column_is_as_high_as_its_number_and_missing_where_that_is_not_known(data: AccountData) -> None:
    weeks, months = list(reversed(data.rows["weeks"][:27])), list(reversed(data.rows["months"]))
    mails = [row for row in reversed(data.rows["campaigns"]) if row["type"] != "automated"]
    chosen = {
        "Good and bad reviews on the feedback page, by week": (weeks, "good_count", "bad_count"),
        "Contacts joined and left, by week": (weeks, "joined_count", "left_count"),
        "Mentions on social networks, by week": (weeks, "mention_count", ""),
        "Campaign messages sent and opened, by month of sending": (months, "opened_count", "sent_count"),
        "Coupons redeemed, by month": (months, "redeemed_count", ""),
        "Opened and clicked, of delivered messages, by campaign": (mails, "click_rate", "open_rate"),
    }
    for picture in pictures(page(data)):
        if picture.title not in chosen:
            continue
        rows, *columns = chosen[picture.title]
        zero = next(y for _, y, text in picture.ticks if number(text)[0] == 0)
        far, text = max((abs(y - zero), text) for _, y, text in picture.ticks)
        scale = far / number(text)[0]
        for look, name in zip(("accent", "second"), columns, strict=True):
            drawn = [height / scale for *_, height in picture.boxes(look)]
            known = [row[name] for row in rows if row[name]] if name else []
            assert drawn == pytest.approx(known, abs=0.2 / scale), picture.title


def hits(picture: Picture) -> list[str]:
    return [part.text or "" for part in picture.svg.iter(f"{_SVG}title")]


@EVERY
def test_what_a_pointer_finds_says_the_period_and_each_number(data: AccountData) -> None:
    for picture in pictures(page(data)):
        if picture.title != "Contacts joined and left, by week":
            continue
        assert hits(picture)[-1].startswith("16–22 Mar 2026 so far: ")
        for found in hits(picture):
            name, _, counts = found.partition(": ")
            assert re.fullmatch(r"contacts joined [\d,–]+, contacts left [\d,–]+", counts), name


@EVERY
def test_a_heading_counts_what_is_below_it(data: AccountData) -> None:
    html = page(data)
    part = section(html, "campaigns")
    if data.rows["campaigns"]:
        assert len(tables(part)[0]) == len(data.rows["campaigns"])
        assert html.count('<article class="campaign"') == len(data.rows["campaigns"])
    part = section(html, "data")
    if found := re.search(r"(\d+) of (\d+) kinds?", plain(part)):
        assert int(found[2]) == len(data.rows["freshness"])
        assert int(found[2]) - int(found[1]) == sum(
            row["coverage_rate"] < 1 for row in data.rows["freshness"]
        )


def _columns(data: AccountData) -> Iterator[tuple[str, list[dict[str, Any]], dict[str, str]]]:
    """(section, the mart's rows, heading → column)."""
    yield "campaigns", list(data.rows["campaigns"]), {
        "Sent": "sent_count", "Opened": "open_rate", "Clicked": "click_rate", "Unsubscribed": "unsubscribe_rate",
        "Against usual": "open_rate_over_median",
    }  # fmt: skip
    yield "reputation", list(data.rows["channels"]), {
        "Stated rating": "average_rating", "Change, 28 days": "average_rating_change_28d", "Reviews, 28 days": "review_count_28d",
        "Good reviews, 28 days": "good_rate_28d", "Positive mentions, 28 days": "positive_rate_28d",
    }  # fmt: skip
    yield "months", list(data.rows["months"]), {
        "Campaign messages": "sent_count", "Opened": "open_rate", "Clicked": "click_rate", "Contacts joined": "joined_count",
        "Reviews on review sites": "online_review_count", "Rating on review sites": "average_rating",
        "Coupons redeemed": "redeemed_count",
    }  # fmt: skip
    yield (
        "growth",
        list(data.rows["lists"]),
        {
            "Contacts": "size",
            "Active": "active_size",
            "Joined": "joined_count",
            "Left": "left_count",
            "Moved": "moved_count",
        },
    )
    yield (
        "social",
        list(data.rows["networks"]),
        {"Mentions, 28 days": "mention_count", "Posts, 28 days": "post_count"},
    )
    yield (
        "coupons",
        list(data.rows["coupons"][:6]),
        {"Issued": "issued_count", "Redeemed since": "redeemed_count", "Share": "redemption_rate"},
    )
    lacking = [row for row in data.rows["freshness"] if row["coverage_rate"] < 1]
    yield (
        "data",
        lacking,
        {"Read": "coverage_rate", "Not readable": "rejected_count", "Odd dates": "odd_date_count"},
    )


@EVERY
def test_every_cell_is_the_mart_s_number_and_a_dash_is_null(data: AccountData) -> None:
    html = page(data)
    for name, rows, columns in _columns(data):
        found = [each for each in tables(section(html, name)) if each and set(columns) <= set(each[0])]
        assert len(found) == bool(rows), name
        for shown, row in zip(found[0] if rows else [], rows, strict=True):
            for heading, column in columns.items():
                value = re.sub(r", [\d,]+ reviews?$", "", shown[heading])
                assert is_shown(value, row[column]), (
                    f"{name}: {heading} shows {shown[heading]} for {row[column]}"
                )


def test_a_day_that_is_not_known_is_no_zero() -> None:
    days = [
        {**FULL["days"][0], "day_on": TODAY - dt.timedelta(days=back), "good_count": 1} for back in range(25)
    ]
    days[6]["good_count"] = None
    (changed,) = tables(section(page(account(**FULL | {"days": days})), "changes"))
    (good,) = [row for row in changed if row["What"] == "Good reviews"]
    assert list(good) == [
        "What",
        "Last complete week 9–15 Mar 2026",
        "Week before 2–8 Mar 2026",
        "Change",
        "A year before 10–16 Mar 2025",
        "Usual range 8 weeks before",
        "This week so far 16–20 Mar 2026",
    ], "each week is dated"
    assert list(good.values())[1:4] == [UNKNOWN, "7", UNKNOWN]


@pytest.mark.parametrize(("hours", "is_said"), [(1, False), (29.9, False), (30.1, True), (24 * 40, True)])
def test_a_report_of_a_pipeline_that_stands_still_says_so_first(hours: float, is_said: bool) -> None:
    data = account(**FULL)
    late = AccountData(
        data.name, data.as_of, TODAY + dt.timedelta(1), data.zone, data.rows, NOW + dt.timedelta(hours=hours)
    )
    said = "Syncing has stopped. These figures are of 21 Mar 2026"  # as of 20 March in UTC
    assert (said in plain(page(late)).split("Active contacts")[0]) is is_said
    assert "out of date after 21 Mar, 09:30" in plain(page(late)), "who opens it later can tell"
