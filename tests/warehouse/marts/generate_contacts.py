"""Contacts, their timelines, visits, automations and coupons of a made-up account."""

import datetime as dt
import json

from tests.warehouse.marts.made import NIGHTS, Made
from tests.warehouse.marts.rows import Row

_DOMAINS = ("example.com", "example.org", "mail.example.net", "old.example.net")
_STATUS = {0: "unconfirmed", 1: "active", 2: "unsubscribed", 3: "bounced"}
#: Messages of other channels and of none that is told, and entries that are no message though they name a
#: campaign.
_OTHER_KEYS = ("sms-sent", "browser-push-sent", "campaign-sent", "email-campaign-opened")
_TAGS = {0: ("google", "cpc"), 1: (None, None), 2: (" Facebook", None), 3: ("", "Social"), 4: (None, " ")}
_LISTS = (1, 2, 3, 4)
_LATER_LIST = 5
_FATES = ("comes", "goes", "moves", "moves as another", "turns into another", "returns as another")
_FATES += ("on two, then one",)


def contact_rows(made: Made) -> dict[str, list[Row]]:
    """Contacts on four lists; one address in twelve stands on two of them, in capitals on the second."""
    names = ("lists", "contacts", "timeline_events", "timeline_visits", "timeline_automations", "coupons")
    rows: dict[str, list[Row]] = {name: [] for name in names}
    for number in _LISTS:
        gone_at = made.moment(9) if number == 4 else None
        rows["lists"].append(made.row("list_id name _deleted_at", number, f"List {number}", gone_at))
    rows["lists"].append(made.row(list_id=_LATER_LIST, name="Came later", _first_seen_at=made.moment(12)))
    for number in range(made.contacts):
        _person(made, number, rows)
    for number in range(made.contacts // 10):
        _comer(made, 30_000 + 4 * number, rows["contacts"])
        rows["timeline_events"] += _mails(made, 30_000 + 4 * number)
    columns, later = "coupon_id email is_redeemed redeemed_on", made.today + dt.timedelta(days=2)
    rows["coupons"].append(made.row(columns, 1, "late@example.com", True, later))
    _wrong_dates(made, rows)
    rows["coupons"].append(made.row(columns, 2, "late@example.com", False, made.today))
    return rows


def _wrong_dates(made: Made, rows: dict[str, list[Row]]) -> None:
    """A contact, visit, message and automation of the year 1, and ones that lie ahead."""
    for number, moment in enumerate((dt.datetime(1, 2, 1, tzinfo=dt.UTC), made.moment(-500))):
        who = {"contact_id": 90_000 + number}
        status = ("active", "unsubscribed")[number]
        contact = {"list_id": 1, "email": f"odd{number}@example.com", "status": status}
        rows["contacts"].append(made.row(registered_at=moment, **contact, **who))
        visit = {"visit_key": "odd", "link": "https://shop.example.com/menu", "visited_at": moment}
        rows["timeline_visits"].append(made.row(**visit, **who))
        run = {"automation_key": "odd automation", "name": "Welcome", "type": "email"}
        rows["timeline_automations"].append(made.row(triggered_at=moment, **run, **who))
        mail, *_ = _mails(made, who["contact_id"])
        rows["timeline_events"] += [mail, mail | {"event_key": "odd mail", "occurred_at": moment}]


def _mails(made: Made, contact_id: int) -> list[Row]:
    """To somebody who came: before, on the way, and since; nothing of it is drawn."""
    details = json.dumps([{"key": "subject", "value": "Letter 1"}, {"key": "links-clicked", "value": "1"}])
    told = {"contact_id": contact_id, "key": "email-sent", "snippet": "Letter 1", "details": details}
    return [
        made.row(event_key=f"{contact_id}-{back}", occurred_at=made.moment(back), **told)
        for back in (60, 20.5, 13.5, 12.5, 11.5, 5, 0.5)
    ]


def _comer(made: Made, contact_id: int, rows: list[Row]) -> None:
    """A contact of a later night, and what another night showed: gone, moved, or under another id."""
    list_id, day = made.draw.choice((*_LISTS, _LATER_LIST)), made.draw.randint(1, 11)
    target = made.draw.choice([one for one in _LISTS if one != list_id])
    email = f"comer{contact_id}@example.com" if made.chance(0.95) else None
    status = made.draw.choice(["active", "active", "unsubscribed"])
    registered_at = made.moment(made.draw.choice([11.2, 30, 300]))

    def seen(where: int, number: int, came: float | None, went: float | None = None) -> None:
        came_at = made.moment(came) if came else made.moment(NIGHTS)
        went_at = made.moment(went) if went else None
        address = email.upper() if email and made.chance(0.3) else email
        times = {"_first_seen_at": came_at, "_changed_at": went_at or came_at, "_deleted_at": went_at}
        columns = "list_id contact_id email status registered_at"
        rows.append(made.row(columns, where, number, address, status, registered_at, **times))

    begun = 12 if list_id == _LATER_LIST else made.draw.choice([None, 12, 20])
    fate = made.draw.choice(_FATES)
    seen(list_id, contact_id, begun, None if fate == "comes" else day)
    if fate == "moves":  # lists are read one after the other
        seen(target, contact_id, day - made.draw.choice([-0.001, 0, 0.001]))
    if fate in ("moves as another", "on two, then one"):
        seen(target, contact_id + 1, day)
    if fate == "on two, then one":
        seen(target % 4 + 1 if target % 4 + 1 != list_id else target, contact_id + 2, begun or NIGHTS, day)
    if fate == "turns into another":
        seen(list_id, contact_id + 1, day)
    if fate == "returns as another" and day > 1:
        seen(list_id, contact_id + 1, day - 1)


def _person(made: Made, number: int, rows: dict[str, list[Row]]) -> None:
    email = f"person{number}@{made.draw.choice(_DOMAINS)}" if number % 500 else None
    if email is None:
        email = made.draw.choice([None, "no address"])
    registered_at = made.moment(made.draw.random() * 400)
    entries = [(made.draw.choice(_LISTS), 10_000 + 2 * number, email)]
    if number % 12 == 0 and email:
        entries.append((entries[0][0] % 4 + 1, 10_001 + 2 * number, email.upper()))
    for _, contact_id, _ in entries:
        _timeline(made, contact_id, registered_at, rows)
    if number % 50 == 1:  # moved between the readings of the two lists
        entries.append((entries[0][0] % 4 + 1, *entries[0][1:]))
    for list_id, contact_id, address in entries:
        code = made.draw.choices((0, 1, 2, 3), (4, 84, 8, 4))[0]
        at = None if made.chance(0.01) else registered_at
        gone_at = made.moment(made.draw.random() * 30) if made.chance(0.03) else None
        columns = "list_id contact_id email status status_code registered_at _deleted_at"
        values = (list_id, contact_id, address, _STATUS[code], code, at, gone_at)
        rows["contacts"].append(made.row(columns, *values))
    if email and made.chance(0.3):
        _coupon(made, number, email, rows["coupons"])


def _timeline(made: Made, contact_id: int, registered_at: dt.datetime, rows: dict[str, list[Row]]) -> None:
    since = (made.moment(0) - registered_at).days
    for number in range(made.draw.randint(0, 7)):
        campaign = made.draw.randrange(40)
        sent_at = made.moment(made.draw.random() * since)
        rows["timeline_events"].append(_sent(made, contact_id, number, f"Letter {campaign}", sent_at))
        if made.chance(0.2):
            at = sent_at + dt.timedelta(hours=made.draw.random() * 200)
            rows["timeline_visits"].append(_visit(made, contact_id, number, campaign, at))
    by_text = contact_id % 40 in (6, 7)  # hardly mailed, but sent many text messages
    for number in range(made.draw.randint(3, 9) if by_text else made.chance(0.3)):
        triggered_at = made.moment(made.draw.random() * since)
        kinds = ["email", "sms", "Email", "e-mail", " SMS ", "browser_push", None]
        kind = "sms" if by_text else made.draw.choice(kinds)
        rows["timeline_automations"].append(_automation(made, contact_id, number, kind, triggered_at))


def _automation(made: Made, contact_id: int, number: int, kind: str | None, triggered_at: dt.datetime) -> Row:
    """Some have neither moment nor details; text messages have no subject or opening and few a click."""
    minutes = made.draw.choice([0, 1, made.draw.randint(2, 5000)])
    opened_at = triggered_at + dt.timedelta(minutes=minutes) if made.chance(0.5) else None
    clicked_at = opened_at + dt.timedelta(minutes=7) if opened_at and made.chance(0.4) else None
    dates = {"send-date": triggered_at, "open-date": opened_at, "click-date": clicked_at}
    is_text = "sms" in (kind or "").lower()
    if is_text:
        dates = {"send-date": triggered_at} | ({"click-date": clicked_at} if made.chance(0.4) else {})
    title, numbers = ("message", [13, 22]) if is_text else ("subject", [4, 13, 31])
    details = [{"key": title, "value": f"Letter {made.draw.choice(numbers)}"}]
    details += [{"key": key, "value": _shown(made, moment)} for key, moment in dates.items()]
    name = made.draw.choice(["Welcome", "Birthday"])
    at = None if made.chance(0.05) else triggered_at
    told = None if made.chance(0.05) else json.dumps(details)
    columns = "contact_id automation_key name type triggered_at details"
    return made.row(columns, contact_id, f"a{contact_id}-{number}", name, kind, at, told)


def _sent(made: Made, contact_id: int, number: int, subject: str, sent_at: dt.datetime) -> Row:
    """As the service lists it: local times as text, counts as text or number, now and then nothing at all."""
    minutes = made.draw.choice([0, 1, *(made.draw.randint(1, 5000) for _ in range(8))])
    opened_at = sent_at + dt.timedelta(minutes=minutes) if made.chance(0.4) else None
    clicks = made.draw.choice([0, "0", "1", 2, "3"]) if opened_at else made.draw.choice(["0"] * 30 + ["1"])
    title = f" {subject.upper()}" if made.chance(0.1) else subject
    details = [
        {"key": "subject", "label": "Subject", "value": title},
        {"key": "send-date", "label": "Send Date", "value": _shown(made, sent_at)},
        {"key": "open-date", "label": "Open Date", "value": _shown(made, opened_at)},
        {"key": "links-clicked", "label": "Links Clicked", "value": clicks},
    ]
    odd = ["mail-sent", "email-sent", "list-subscription", *_OTHER_KEYS]
    key = made.draw.choice(["email-campaign-sent"] * 16 + odd)
    told = None if made.chance(0.03) else json.dumps(details)
    columns = "contact_id event_key key snippet occurred_at details"
    return made.row(columns, contact_id, f"{contact_id}-{number}", key, subject, sent_at, told)


def _shown(made: Made, moment: dt.datetime | None) -> str:
    """In one of the service's forms, on the account's clock."""
    if moment is None:
        return made.draw.choice(["N/A", "-", ""])
    forms = ["%Y-%m-%d %I:%M %p", "%Y-%m-%d %I:%M%p", "%m/%d/%Y %H:%M", "%d-%m-%Y %I:%M %p", ""]
    form = made.draw.choice(forms)
    return moment.astimezone(made.zone).strftime(form) if form else str(int(moment.timestamp()))


def _visit(made: Made, contact_id: int, number: int, campaign: int, visited_at: dt.datetime) -> Row:
    """Mostly of mails; some of other sources, some of none that is told."""
    source, medium = _TAGS.get((contact_id + number) % 11, ("newsletter", "email"))
    page = "book" if contact_id % 5 == 0 and number % 2 else "menu"
    tag = f"c{1000 + campaign}-letter" if made.chance(0.8) else made.draw.choice([None, "spring"])
    utm = {"utm_campaign": tag, "utm_source": source, "utm_medium": medium}
    visit = {"visit_key": f"{contact_id}-{number}", "link": f"https://shop.example.com/{page}"}
    return made.row(contact_id=contact_id, **visit, **utm, visited_at=visited_at)


def _coupon(made: Made, number: int, email: str, rows: list[Row]) -> None:
    is_redeemed = made.chance(0.3)
    on = made.today - dt.timedelta(days=made.draw.randint(0, 90)) if is_redeemed else None
    seen_at = made.moment(made.draw.choice([45, 45, 40, 20, 1]))
    times = {"_first_seen_at": seen_at, "_deleted_at": made.moment(0.5) if number % 11 == 0 else None}
    columns = "coupon_id email coupon_code is_redeemed redeemed_on"
    rows.append(made.row(columns, 500_000 + number, email, f"C-{number}", is_redeemed, on, **times))
