"""When addresses began to react, were lost and came back, without SQL: day by day."""

import datetime as dt
from collections.abc import Iterator
from typing import Any

from tests.warehouse.marts.expected import Found, Source, grouped, row_of
from tests.warehouse.marts.expected_contacts import contact_campaign, is_known_opening
from tests.warehouse.marts.expected_engagement import by_address
from tests.warehouse.marts.expected_growth import Readings

_DAY = dt.timedelta(days=1)
_ORDER = ("activated", "won back", "at risk", "dormant", "unsubscribed", "bounced")
_FIRST = {"click": 0, "open": 1, "visit": 2}


def contact_lifecycle(source: Source) -> Found:
    messages = grouped(contact_campaign(source), "account", "contact_id")
    visits = grouped(source.rows("timeline_visits"), "account", "contact_id")
    found = []
    for (account, email), entries in by_address(source.rows("contacts", deleted=True)).items():
        if not email:
            continue
        keys = {(account, row["contact_id"]) for row in entries}
        mine = [one for key in keys for one in messages.get(key, [])]
        came = [one for key in keys for one in visits.get(key, [])]
        steps = list(_watched(source, account, entries, mine, _reactions(source, account, mine, came)))
        steps.sort(key=lambda step: (step["day_on"], _ORDER.index(step["transition"])))
        for number, step in enumerate(steps, 1):
            row = {"account": account, "email": email, **step, "transition_number": number}
            found.append(row | {"is_last": number == len(steps)})
    return found


def _reactions(source: Source, account: str, messages: Found, visits: Found) -> dict[dt.date, Found]:
    """By day, in their order."""
    some = [("open", one, one["opened_at"]) for one in messages]
    some += [("click", one, one["clicked_at"] or one["opened_at"]) for one in messages if one["is_clicked"]]
    some += [("visit", None, one["visited_at"]) for one in visits]
    found: dict[dt.date, Found] = {}

    def order(one: Any) -> tuple[Any, ...]:
        kind, message, at = one
        return at, _FIRST[kind], *((message["message_key"], message["contact_id"]) if message else ("", 0))

    for kind, message, at in sorted((one for one in some if one[2] and one[2].year >= 2000), key=order):
        on = source.local_date(account, at)
        assert on
        found.setdefault(on, []).append({"reaction": kind, "message": message, "at": at})
    return found


def _watched(
    source: Source, account: str, entries: Found, messages: Found, reactions: dict[dt.date, Found]
) -> Iterator[dict[str, Any]]:
    sent = sorted(
        (one for one in messages if one["sent_at"]),
        key=lambda one: (one["sent_at"], one["contact_id"], one["message_key"]),
    )
    registered = min(source.plausible(account, (row["registered_at"] for row in entries)), default=None)
    mails: dict[dt.date, int] = {}
    for one in sent:
        if is_known_opening(one) and (on := source.local_date(account, one["sent_at"])):
            mails[on] = mails.get(on, 0) + 1
    ended = _ended(source, account, entries)
    risen = source.local_date(account, registered)
    today = source.today(account)
    mailed = [day for day in mails if day.year >= 2000]
    begin = min([today, *mailed, *reactions, *ended, *filter(None, [risen])])
    last: tuple[dt.date, dt.datetime] | None = None
    at_risk: dict[str, Any] | None = None
    is_dormant = False

    def step(
        transition: str, on: dt.date, at: dt.datetime, reaction: dict[str, Any] | None = None
    ) -> dict[str, Any]:
        before = [one for one in sent if one["sent_at"] <= at]
        heard = [one for one in before if last and one["sent_at"] <= last[1]]
        message = (reaction or {}).get("message") or (before[-1] if before else None)
        kind = (reaction or {}).get("reaction")
        row = row_of("transition day_on is_day_known reaction", transition, on, True, kind)
        columns = "message_channel message_sent_at campaign_id subject automation"
        names = ("channel", "sent_at", "campaign_id", "subject", "automation")
        row |= row_of(columns, *(message[name] if message else None for name in names))
        row |= {"days_since_active": (on - last[0]).days if last else None, "days_at_risk": None}
        return row | {"messages_since_active_count": len(before) - len(heard)}

    def midnight(on: dt.date) -> dt.datetime:
        return dt.datetime.combine(on, dt.time(), source.zones[account]).astimezone(dt.UTC)

    day, recent = begin, 0  # mails of the 180 days up to this one
    while day <= today:
        recent += mails.get(day, 0) - mails.get(day - 180 * _DAY, 0)
        for status, at in ended.get(day, ()):
            later = [one for some in reactions.values() for one in some if one["at"] <= at]
            known = last
            if later:  # also of this day
                on = max(on for on, some in reactions.items() if some[0]["at"] <= at)
                last = (min(on, day), max(one["at"] for one in reactions[on]))
            yield step(status, day, at) | {"is_day_known": False}
            last = known
        if day in reactions:
            first = reactions[day][0]
            if last is None:
                yield step("activated", day, first["at"], first)
            elif at_risk:
                days = (day - at_risk["day_on"]).days
                yield at_risk | {"days_at_risk": days}
                yield step("won back", day, first["at"], first) | {"days_at_risk": days}
            last, at_risk, is_dormant = (day, max(one["at"] for one in reactions[day])), None, False
        elif last and (day - last[0]).days == 91:
            at_risk = step("at risk", day, midnight(day))
        silent = (day - last[0]).days > 180 if last else risen is None or (day - risen).days > 30
        if silent and day not in reactions and recent >= 3 and not is_dormant:
            is_dormant = True
            yield step("dormant", day, midnight(day + _DAY))
        day += _DAY
    if at_risk:
        yield at_risk | {"days_at_risk": (today - at_risk["day_on"]).days}


def _ended(source: Source, account: str, entries: Found) -> dict[dt.date, list[tuple[str, dt.datetime]]]:
    """Of the first reading, as the models were built once: each status once."""
    moments: dict[str, dt.datetime] = {}
    for row in entries:
        at = row["_first_seen_at"] if row["_deleted_at"] else row["_changed_at"]
        if row["status"] in ("unsubscribed", "bounced"):
            moments[row["status"]] = min(at, moments.get(row["status"], at))
    found: dict[dt.date, list[tuple[str, dt.datetime]]] = {}
    for status, at in moments.items():
        found.setdefault(Readings(source, account).day(at), []).append((status, at))
    return found
