"""Campaigns, their statistics of many nights, links and clickers of a made-up account."""

import datetime as dt

from tests.warehouse.marts.made import NOW, Made
from tests.warehouse.marts.rows import Row

_URLS = (
    "https://shop.example.com/menu",
    "https://shop.example.com/book",
    "https://blog.example.com/story",
    "https://shop.example.com/gift",
)


#: Campaigns with the subject of another: an automation that goes on beside it, and two that are newer than
#: what is long sent.
_SUBJECTS = {31: 13, 38: 12, 39: 20}


def campaign_rows(made: Made) -> dict[str, list[Row]]:
    """About forty campaigns over a year; ids grow with the day of creation."""
    names = ("campaigns", "campaign_stats", "campaign_links", "campaign_clickers")
    rows: dict[str, list[Row]] = {name: [] for name in names}
    for number in range(40):
        campaign = _campaign(made, number)
        rows["campaigns"].append(campaign)
        if campaign["campaign_id"] % 10 != 7:  # never asked
            _statistics(made, campaign, rows)
    return rows


def _campaign(made: Made, number: int) -> Row:
    created_at = made.moment(400 - 10 * number + made.draw.random() * 9)
    kind = "automated" if number % 9 == 4 else "standard"
    status = "automation" if kind == "automated" else made.draw.choice(["sent"] * 8 + ["draft", "scheduled"])
    # some subjects are used twice
    subject = f"Letter {_SUBJECTS.get(number, number // 2 if number % 10 == 1 else number)}"
    # told of two in three; of two with one subject at nearly the same time
    sent_at = None if number % 3 == 1 else made.moment(8.5 if number == 20 else 398 - 10 * number)
    times = {"sent_at": sent_at, "created_at": None if number == 30 else created_at}
    times["_deleted_at"] = made.moment(3) if number % 13 == 5 else None
    name = f"Name {number}" if number % 3 else None
    columns = "campaign_id status type name subject message"
    return made.row(columns, 1000 + number, status, kind, name, subject, "Hello", **times)


def _statistics(made: Made, campaign: Row, rows: dict[str, list[Row]]) -> None:
    """Totals that grow with the nights; one in five of the older ones was asked late for the first time."""
    born = made.local_date(campaign["created_at"] or made.moment(90))
    nights = [night for night in made.nights if night >= born]
    if made.chance(0.2):
        nights = nights[len(nights) // 2 :]
    sent = 0 if campaign["status"] in ("draft", "scheduled") else made.draw.randint(50, 400)
    opened = clicks = 0
    urls = made.draw.sample(_URLS, made.draw.randint(0, 3))
    for night in nights:
        if made.chance(0.1):
            continue  # this campaign's answer was missing
        opened = min(sent, opened + made.draw.randint(-1, 12)) if sent else 0
        opened = 0 if campaign["campaign_id"] == 1022 else max(opened, 0)  # text messages
        counts = {"opened": opened, "unopened": sent - opened, "bounced": sent // 50}
        counts["unsubscribed"] = min(opened, sent // 70)
        whole = sent + sent // 50
        shares = {f"{name}_percent": _stated(made, count, whole) for name, count in counts.items()}
        row = made.row(campaign_id=campaign["campaign_id"], observed_on=night, **shares)
        for name, count in counts.items():
            row[f"{name}_count"] = None if name in ("opened", "bounced") and made.chance(0.02) else count
        rows["campaign_stats"].append(row)
        clicks += made.draw.randint(0, 6) if opened else 0
        _links(made, campaign["campaign_id"], night, urls, clicks, rows["campaign_links"])
    if campaign["campaign_id"] % 4:  # one in twelve says less than was opened
        told = 1 if campaign["campaign_id"] % 12 == 7 else sent
        failed = sent // 40 if campaign["campaign_id"] % 4 == 1 else None
        campaign |= {"delivered_count": told, "failed_count": failed}
    if nights and sent:
        rows["campaign_clickers"] += _clickers(made, campaign["campaign_id"], urls, sent)


def _stated(made: Made, count: int, whole: int) -> float | None:
    """The percentage beside a count: rounded or cut, now and then missing, over 100 or wrong."""
    share = 100 * count / whole if whole else 0.0
    stated = [round(share, 2), float(int(share)), None, 366.67, share / 2]
    return made.draw.choices(stated, (80, 10, 5, 2, 3))[0]


def _links(
    made: Made, campaign_id: int, night: dt.date, urls: list[str], clicks: int, rows: list[Row]
) -> None:
    for place, url in enumerate(urls):
        if place == 2 and night == made.today:
            continue  # gone from the last answer
        count = clicks // (place + 1)
        # one of its addresses could not be read; now and then, and the last time
        is_unread = campaign_id % 8 == 2 and place == 1 and (made.today - night).days % 3 == 0
        counts = (None, None) if is_unread else (count // 2, count)
        columns = "campaign_id url observed_on message clicker_count click_count"
        rows.append(made.row(columns, campaign_id, url, night, f"Link {place}", *counts))


def _clickers(made: Made, campaign_id: int, urls: list[str], sent: int) -> list[Row]:
    """Addresses; of a few campaigns there are more than mails."""
    many = sent * 2 if made.chance(0.05) else made.draw.randint(0, sent // 5)
    rows = {}
    for url in urls:
        for _ in range(many):
            email = f"{'Person' if made.chance(0.1) else 'person'}{made.draw.randint(0, sent)}@example.com"
            gone_at = NOW if made.chance(0.05) else None
            columns = "campaign_id url email click_count _deleted_at"
            rows[url, email] = made.row(columns, campaign_id, url, email, 1, gone_at)
    return list(rows.values())
