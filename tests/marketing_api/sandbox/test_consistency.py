"""The account at any moment: the same from the same origin, and consistent however it is asked."""

import datetime as dt
import itertools
import re
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from marketing_api.sandbox.world import World
from tests.marketing_api.sandbox.asking import DAY, NOW, Asking, Refused, asking

#: Whole reads of an account as of its start, and after a while.
AGES = (0, 1, 40)


def mails_of(world: World, now: int) -> dict[str, int]:
    """Over all campaigns and automations that can be seen."""
    found = Counter(dict.fromkeys(("sent", "bounced", "opened", "unsubscribed", "clickers", "clicks"), 0))
    for campaign in world.find_campaigns(now).values():
        found.update(campaign.count_mails(now))
        for mail in campaign.mails:
            if mail.clicked_at <= now:
                found.update(clickers=1, clicks=sum(times for _, times in mail.clicks))
    return found


def days_of(world: World, days: int) -> Iterator[dict[str, Any]]:
    """Seeded registrations and deletions, and mails, of each of the last local days."""
    moments, now = world.moments, world.now()
    tomorrow, contacts = moments.date(now) + dt.timedelta(days=1), world.subscribers.contacts.values()
    ends = [
        min(now, moments.midnight(tomorrow - dt.timedelta(days=back)) - 1)
        for back in reversed(range(days + 1))
    ]
    mails = [mails_of(world, end) for end in ends]
    for (first, last), (before, after) in zip(
        itertools.pairwise(ends), itertools.pairwise(mails), strict=True
    ):
        yield {
            "day": moments.date(last).isoformat(),
            "registered": sum(first < one.registered_at <= last for one in contacts),
            "deleted": sum(first < one.deleted_at <= last for one in contacts),
            "campaigns_sent": [
                campaign.campaign_id
                for campaign in world.find_campaigns(now).values()
                if first < campaign.sent_at <= last
            ],
            **{name: after[name] - before[name] for name in after},
        }


def _every_read(ask: Asking) -> list[Any]:
    contacts = ask.all_contacts()
    answers: list[Any] = [contacts]
    answers += [
        ask.data("emailmarketing/getcontacttimeline", id=one["id"], include="utm,automated")
        for one in contacts[::7]
    ]
    answers += [ask.data("emailmarketing/getcoupon", email=one["email"]) for one in contacts[::7]]
    answers.append(ask.data("emailmarketing/campaigns", limit=1000))
    answers += [
        ask.data(name)
        for name in (
            "app/me",
            "reputation/direct",
            "reputation/online",
            "user/lists",
            "goal/lists",
            "webhook/lists",
        )
    ]
    answers.append(
        ask.data(
            "socialmedia/calendar", from_="2024-01-01", to="2027-12-31", includeposted="true", limit=1000
        )
    )
    return answers


def test_same_origin_shows_the_same_account() -> None:
    assert _every_read(asking(seed=7)) == _every_read(asking(seed=7))


def test_other_seed_shows_another_account() -> None:
    one, other = asking(seed=7).all_contacts(), asking(seed=8).all_contacts()
    assert {contact["email"] for contact in one} != {contact["email"] for contact in other}


def test_advancing_in_steps_or_at_once_leads_to_the_same_account() -> None:
    steps, leap = asking(), asking()
    for _ in range(5):
        steps.control("advance", days=2)
    leap.control("advance", days=10)
    assert _every_read(steps) == _every_read(leap)


@pytest.mark.parametrize("contacts", [100, 101, 600, 777, 5000])
def test_account_shows_exactly_as_many_contacts_as_asked_for(contacts: int) -> None:
    ask = asking(contacts=contacts)
    assert len(ask.all_contacts()) == contacts == ask.control("state")["contacts"]


@pytest.mark.parametrize("age", AGES)
def test_statistics_of_campaigns_equal_the_timelines(age: int) -> None:
    ask = asking(contacts=600, seed=3)
    ask.control("advance", days=age)
    opened, clicked = _from_timelines(ask)
    groups = ask.data("emailmarketing/campaigns", limit=1000)["campaigns"]["items"]
    total = 0
    for group in ("Sent", "Automation"):
        for campaign in groups[group]["data"]:
            kind = "automated" if group == "Automation" else "standard"
            answer = ask.data("emailmarketing/stats", id=campaign["id"], type=kind)["campaign"]
            told = {name: int(text.split(" ")[0]) for name, text in answer["stats"].items()}
            assert told["open"] == opened[campaign["subject"], kind]
            clickers: Counter[str] = Counter()
            for link in answer["clicks"]:
                for text in link.get("clickers", ()):
                    email, times = re.fullmatch(r"(.+)\((\d+) clicks\)", text).groups()  # type: ignore[union-attr]
                    clickers[email] += int(times)
            if kind == "standard":
                assert clickers == clicked[campaign["subject"]]
            total += told["open"]
    assert total > 500


def _from_timelines(ask: Asking) -> tuple[Counter[tuple[str, str]], dict[str, Counter[str]]]:
    """Opens by (subject, kind), and clicks by subject and address."""
    opened: Counter[tuple[str, str]] = Counter()
    clicked: dict[str, Counter[str]] = defaultdict(Counter)
    for contact in ask.all_contacts():
        told = ask.data("emailmarketing/getcontacttimeline", id=contact["id"], include="utm,automated")
        visits = 0
        for entry in told["timeline"]["data"]:
            detail = {one["key"]: one["value"] for one in entry["details"]}
            if entry["key"] == "email-campaign-sent":
                opened[entry["snippet"], "standard"] += detail["open-date"] != "N/A"
                if times := int(detail["links-clicked"]):
                    clicked[entry["snippet"]][contact["email"]] += times
                    visits += times
        for entry in told["automated"]["data"]:
            detail = {one["key"]: one["value"] for one in entry["details"]}
            opened[detail.get("subject", ""), "automated"] += detail.get("open-date", "N/A") != "N/A"
        assert told["utm"]["count"] >= visits
    return opened, clicked


def test_timelines_average_about_a_dozen_entries_and_reads_about_1350_requests() -> None:
    ask = asking(contacts=600)
    contacts = ask.all_contacts()
    totals = [
        ask.data("emailmarketing/getcontacttimeline", id=one["id"])["timeline"]["total"] for one in contacts
    ]
    assert 9 < sum(totals) / len(totals) < 14
    addresses = len({one["email"] for one in contacts})
    campaigns = ask.data("emailmarketing/campaigns", limit=1000)["campaigns"]["count"]
    posts = ask.data("socialmedia/calendar", from_="2024-01-01", to="2027-12-31", includeposted="true")[
        "calendar"
    ]["count"]
    assert 25 <= campaigns <= 40
    assert 1250 < len(contacts) + addresses + 2 * campaigns + posts + 40 < 1450


def test_some_addresses_stand_on_two_lists_with_different_ids() -> None:
    ask = asking(contacts=600)
    ids: dict[str, set[str]] = defaultdict(set)
    for contact in ask.all_contacts():
        ids[contact["email"]].add(contact["id"])
    twice = [email for email, several in ids.items() if len(several) > 1]
    assert 20 < len(twice) < 80
    ask.switch("email-found", "array")
    assert len(ask.data("emailmarketing/getcontactbyemail", email=twice[0].upper())["contact"]) == len(
        ids[twice[0]]
    )


def test_time_brings_new_contacts_sends_opens_departures_deletions_reviews_and_posts() -> None:
    ask = asking(contacts=1000)
    before = {one["id"]: one for one in ask.all_contacts()}
    reviews = ask.data("reputation/direct")["reviews"]["count"]
    month = {"from": "2026-11-20", "to": "2027-02-28"}
    posts = ask.data("socialmedia/calendar", **month)["calendar"]["count"]
    ask.control("advance", days=30)
    after = {one["id"]: one for one in ask.all_contacts()}
    days = list(days_of(ask.app.world, 30))
    assert len(after.keys() - before.keys()) > 30
    assert before.keys() - after.keys()
    left = [
        one
        for one in before
        if one in after and before[one]["status"] == "1" and after[one]["status"] in "23"
    ]
    assert left
    for name in ("registered", "deleted", "opened", "clicks", "unsubscribed", "sent"):
        assert sum(day[name] for day in days) > 0, name
    assert ask.data("reputation/direct")["reviews"]["count"] > reviews
    assert ask.data("socialmedia/calendar", **month, includeposted="true")["calendar"]["count"] > posts


def test_daily_truth_adds_up_to_the_listing() -> None:
    ask = asking(contacts=1000)
    before = ask.control("state")["contacts"]
    ask.control("advance", days=3)
    days = list(days_of(ask.app.world, 4))
    grown = sum(day["registered"] - day["deleted"] for day in days[1:])
    first_day_rest = ask.control("state")["contacts"] - before - grown
    assert 0 <= first_day_rest <= days[0]["registered"] + 10


def test_deleted_contact_is_gone_everywhere() -> None:
    ask = asking(contacts=1000)
    before = {one["id"] for one in ask.all_contacts()}
    ask.control("advance", days=30)
    gone = next(iter(before - {one["id"] for one in ask.all_contacts()}))
    for name in ("getcontact", "getcontacttimeline"):
        with pytest.raises(Refused):
            ask.data(f"emailmarketing/{name}", id=gone)


def test_campaign_is_drafted_scheduled_and_sent_as_time_passes() -> None:
    ask = asking()
    scheduled = ask.data("emailmarketing/campaigns", filter="scheduled")["campaigns"]["items"]["Scheduled"][
        "data"
    ][0]["id"]
    ask.control("advance", days=14)
    sent = ask.data("emailmarketing/campaigns", filter="sent", limit=100)["campaigns"]["items"]["Sent"][
        "data"
    ]
    assert scheduled in {one["id"] for one in sent}


def test_good_and_bad_reviews_per_day_equal_the_reviews() -> None:
    ask = asking(contacts=600)
    reviews = ask.data("reputation/direct", filter="date", from_="2026-03-01", to="2026-06-30")["reviews"][
        "items"
    ]
    stats = ask.data("reputation/stats", from_="2026-03-01", to="2026-06-30")["stats"]["Reviews"]
    assert sum(int(day["good"]) for day in stats) == sum(review["rating"] == "Good" for review in reviews)
    assert sum(int(day["bad"]) for day in stats) == sum(review["rating"] == "Bad" for review in reviews)
    assert all(review["date"][:2] in ("03", "04", "05", "06") for review in reviews)


def test_short_links_with_clicks_are_in_the_messages_of_their_posts() -> None:
    links = asking().data("socialmedia/stats")["stats"]["items"]
    assert links
    assert all(link["shortenurl"] and link["shortenurl"] in link["message"] for link in links)


def test_date_ranges_join_without_gap_or_overlap() -> None:
    ask = asking(contacts=600)
    whole = ask.data("reputation/direct", filter="date", from_="2026-01-01", to="2026-01-31")["reviews"][
        "items"
    ]
    halves = [
        review
        for first, last in (("2026-01-01", "2026-01-15"), ("01/16/2026", "01/31/2026"))
        for review in ask.data("reputation/direct", filter="date", from_=first, to=last)["reviews"]["items"]
    ]
    assert whole == halves
    assert whole


def test_without_a_fixed_time_the_clock_follows_the_present() -> None:
    before = time.time()
    ask = asking(now=None)
    assert int(before) - 1 <= ask.control("state")["now"] <= time.time() + 1
    assert len(ask.all_contacts()) == pytest.approx(100, abs=2)


ZONES = (
    "Pacific/Pago_Pago",
    "America/New_York",
    "America/Santiago",
    "UTC",
    "Europe/Berlin",
    "Pacific/Kiritimati",
)


@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.parametrize("hour", range(0, 24, 3))
def test_daily_series_has_exactly_the_days_asked_for(zone: str, hour: int) -> None:
    """Across both changes of the clocks, in every zone, until the account's own today."""
    now = NOW // DAY * DAY + hour * 3600
    ask = asking(timezone=zone, now=now, contacts=1)
    today = dt.datetime.fromtimestamp(now, ZoneInfo(zone)).date()
    for first, last in (
        (dt.date(2026, 3, 1), dt.date(2026, 4, 15)),
        (dt.date(2026, 9, 1), dt.date(2026, 11, 10)),
        (today, today),
    ):
        days = [str(first + dt.timedelta(days=more)) for more in range((last - first).days + 1)]
        told = ask.data("reputation/stats", **{"from": str(first), "to": str(last)})["stats"]
        assert [[one["periode"] for one in told[part]] for part in ("SocialMedia", "FeedbackHub")] == [
            days,
            days,
        ]
        assert {one["periode"] for one in told["Reviews"]} <= set(days)
    ahead = ask.data("reputation/stats", **{"from": str(today), "to": str(today + dt.timedelta(days=9))})[
        "stats"
    ]
    assert [one["periode"] for one in ahead["FeedbackHub"]] == [str(today)]


def test_a_day_shows_the_same_counts_whatever_range_is_asked_for() -> None:
    ask = asking(timezone="America/New_York")
    whole = ask.data("reputation/stats", **{"from": "2026-03-01", "to": "2026-11-10"})["stats"]["FeedbackHub"]
    for one in whole[::20]:
        assert ask.data("reputation/stats", **{"from": one["periode"], "to": one["periode"]})["stats"][
            "FeedbackHub"
        ] == [one]
