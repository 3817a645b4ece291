"""A random account of any size. Every special case that a table must survive is put in on purpose."""

import datetime as dt
import random
from dataclasses import dataclass, fields, replace
from decimal import Decimal

from . import texts
from .account import (
    Account,
    Automation,
    Business,
    Campaign,
    Channel,
    ClickedLink,
    ContactList,
    Coupon,
    DayStats,
    DirectReview,
    Event,
    Goal,
    Group,
    Link,
    Manager,
    Member,
    Mention,
    OnlineReview,
    Post,
    Profile,
    Timeline,
    User,
    Visit,
    Webhook,
)
from .dates import draw, moment
from .schema import TABLES

HISTORY_START = dt.date(2015, 1, 1)  # the design's default: nothing older is ever asked for
ZONES = ["America/New_York", "Europe/Berlin", "Asia/Kolkata", "Australia/Sydney"]
ZONES += ["America/Los_Angeles", "Pacific/Apia", "UTC"]
BIG = 10_158_765_432_109_876  # ids beyond 2**53, where a float would lose digits


@dataclass(frozen=True)
class Sizes:
    """How much of everything; `nothing()` is the account of somebody who has just signed up."""

    contacts: int = 60
    lists: int = 4
    campaigns: int = 12
    posts: int = 24
    links: int = 8
    reviews: int = 20
    mentions: int = 16
    days: int = 12
    users: int = 5
    goals: int = 6
    webhooks: int = 5

    @staticmethod
    def nothing() -> "Sizes":
        return Sizes(**{size.name: 0 for size in fields(Sizes)})


@dataclass
class Drawing:
    """The account under construction with what every part needs to draw from."""

    rng: random.Random
    sizes: Sizes
    text: texts.Texts
    strange: bool
    account: Account

    def past(self, first: dt.date = HISTORY_START) -> dt.datetime:
        return draw(self.rng, self.account.zone, first, self.account.now)

    def local(self, *when: int) -> dt.datetime:
        return moment(dt.datetime(*when), self.account.zone)  # type: ignore[arg-type]

    def ids(self, count: int, first: int) -> list[int]:
        return sorted(self.rng.sample(range(first, first + 10 * count + 10), count))


def account(
    seed: int,
    sizes: Sizes = Sizes(),
    *,
    wild: bool = False,
    strange: bool = False,
    shared_ids: bool = True,
    zone: str | None = "drawn",
    now: dt.datetime | None = None,
) -> Account:
    """Draw an account. `wild` texts, `strange` networks, contacts with one id in all their lists or one id
    per list.

    `zone` None is an account that does not tell its time zone (UTC then).
    """
    rng = random.Random(seed)
    name = rng.choice(ZONES) if zone == "drawn" else zone
    text = texts.Texts(rng, wild)
    business = Business(rng.randint(1, 10**6), text.line(2), text.line(2), "+1 555 0100", "shortname", "Pro")
    made = Account(f"k{rng.getrandbits(128):032x}", name, now or dt.datetime.now(dt.UTC), business)
    drawing = Drawing(rng, sizes, text, strange, made)
    for part in (_reputation, _social, _campaigns, _lists, _members, _timelines, _coupons, _people, _goals):
        part(drawing)
    if not shared_ids:
        _own_id_per_list(made)
    return made


def _reputation(d: Drawing) -> None:
    rng, made = d.rng, d.account
    for number in d.ids(d.sizes.reviews, 100):
        email, phone = d.text.address(number), rng.choice(["", "00123", "+44 20 7946 0000"])
        at, *said, rating = d.past(), d.text.body(), d.text.maybe(), rng.choice(["Good", "Bad"])
        made.direct_reviews.append(DirectReview(number, email, phone, at, *said, rating))
    for review, at in zip(made.direct_reviews, _edges(d), strict=False):
        review.at = at
    _online(d)
    polarities = ["positive", "negative"] + (["neutral"] if d.strange else [])
    for _ in range(d.sizes.mentions):
        on = d.past().astimezone(made.zone).date()
        made.mentions.append(
            Mention(rng.choice(polarities), rng.choice(["Facebook", "Yelp", "Twitter"]), on, d.text.body())
        )
    made.mentions += made.mentions[:2]  # two people may say the same on the same day: both count
    days = {d.past().astimezone(made.zone).date() for _ in range(d.sizes.days)}
    days |= {made.today, HISTORY_START} if d.sizes.days else set()
    made.days = [_day(d, on) for on in sorted(days)]


def _edges(d: Drawing) -> list[dt.datetime]:
    """The first and last moments of ranges, where a date taken in the wrong zone falls outside."""
    now = (d.account.now - dt.timedelta(minutes=5)).replace(second=0, microsecond=0)
    edges = [(2015, 1, 1, 0, 0), (2019, 12, 31, 23, 59), (2020, 1, 1, 0, 0), (2020, 2, 29, 12, 30)]
    return [*(d.local(*edge) for edge in edges), now]


def _online(d: Drawing) -> None:
    rng = d.rng
    ratings = texts.PLAIN_RATINGS + texts.PHP_RATINGS + texts.JSON_RATINGS + texts.GARBAGE_RATINGS
    names = ["Yelp", "TripAdvisor", "Google Places", "OpenTable"] + (["Nextdoor 2.0"] if d.strange else [])
    for name in names if d.sizes.reviews else []:
        reviews = []
        for _ in range(d.sizes.reviews // 2):
            raw, rating = rng.choice(ratings)
            at = d.past() + dt.timedelta(seconds=rng.randint(0, 59))
            username, inquiry, url = d.text.line(2), d.text.body(), d.text.link(rng.randint(1, 99))
            reviews.append(OnlineReview(username, at, inquiry, raw, rating, url))
        if name == "Yelp":
            reviews += [replace(reviews[0]), replace(reviews[0])]  # true duplicates
        silent = name == "OpenTable"
        average = None if silent else round(rng.uniform(1, 5), 2)
        d.account.channels.append(Channel(name, average, None if silent else reviews))


def _day(d: Drawing, on: dt.date) -> DayStats:
    counters = ["twitter", "facebook", "yelp", "foursquare", "googleplus", "pinterest"]
    counters += ["mastodon"] if d.strange else []
    roll, has = d.rng.randint, [d.rng.random() < 0.8 for _ in range(3)]
    mentions = {name: roll(0, 5) for name in counters}
    good_bad = (roll(0, 9), roll(0, 9)) if has[0] else None
    return DayStats(on, good_bad, mentions if has[1] else None, roll(0, 500) if has[2] else None)


def _social(d: Drawing) -> None:
    rng, made = d.rng, d.account
    if not d.sizes.posts and not d.sizes.links:
        return
    kinds = [("Facebook", "page"), ("Twitter", "profile"), ("Linkedin", "profile")]
    kinds += [("Linkedin", "company"), ("Pinterest", "board")]
    kinds += [("Mastodon", "instance"), ("Tiktok", "account")] if d.strange else []
    for network, kind in kinds:
        for number in range(rng.randint(1, 3)):
            profile_id = str(BIG + rng.randint(0, 10**6) * 3 + number)
            profile = Profile(network, kind, profile_id, d.text.line(2), "", "")
            if kind == "profile":
                texts_ = {"screen_name": d.text.line(1), "full_name": d.text.line(2)}
                profile = replace(profile, name="", **texts_)
            made.profiles.append(profile)
    if d.strange:  # profile ids are text in the design: some networks have no numbers
        made.profiles.append(
            Profile("Linkedin", "profile", "urn:li:person:a-b_C9", "", "link", "Link Person")
        )
    _posts(d)
    networks = ["facebook", "twitter", "linkedin", "mastodon" if d.strange else "pinterest"]
    for number in d.ids(d.sizes.links, 40):
        clicks = {name: rng.randint(1, 50) for name in rng.sample(networks, rng.randint(0, 3))}
        at = d.past() + dt.timedelta(seconds=rng.randint(0, 59))
        urls = (f"https://sho.rt/{number}", d.text.link(number))
        made.links.append(Link(number, *urls, d.text.body(), at, rng.randint(0, 99), clicks))


def _posts(d: Drawing) -> None:
    rng, made = d.rng, d.account
    networks = ["facebook", "twitter", "linkedin"] + (["mastodon"] if d.strange else [])
    for number in d.ids(d.sizes.posts, 500):
        if rng.random() >= 0.3:
            at = d.past()
        else:
            day = made.today + dt.timedelta(days=rng.randint(1, 80))
            at = d.local(day.year, day.month, day.day, rng.randint(0, 23), 15)
        network = rng.choice(networks)
        photo = (f"{_IMAGES}/t.png", f"{_IMAGES}/{number}.png") if rng.random() < 0.4 else None
        channel, message = ("page", str(BIG + number), d.text.line(2)), d.text.body()
        details = (d.text.line(), f"uid-{number}", "", d.text.line(2))
        post = Post(number, network, *channel, at, message, photo, *details)
        made.posts.append(post)
        if rng.random() < 0.25:  # the same number on two networks is two posts: the key has both
            other = rng.choice([name for name in networks if name != network])
            made.posts.append(replace(post, network=other, message=d.text.body()))
    made.posts.sort(key=lambda post: post.at)


_IMAGES = "https://img.example.com"
GROUPS = ["Draft", "Sent", "Sent", "Sent", "Scheduled", "Automation"]


def _campaigns(d: Drawing) -> None:
    rng = d.rng
    for number in d.ids(d.sizes.campaigns, 900):
        group = rng.choice(GROUPS)
        sent = group in ("Sent", "Automation")
        names = ("open", "unopened", "bounced", "unsubscribed")
        stats = {name: _share(rng) if sent else (0, Decimal(0)) for name in names}
        texts_ = (d.text.line(4), d.text.body(), "reply@example.com", "from@example.com", d.text.line(2))
        clicks = _clicked(d) if sent else []
        d.account.campaigns.append(Campaign(number, group, *texts_, d.past(), stats, clicks))


def _share(rng: random.Random) -> tuple[int, Decimal]:
    count = rng.randint(0, 400)
    odd = Decimal("366.67")  # over 100 % was seen (row 25)
    return count, rng.choice([odd, Decimal(rng.randint(0, 100)), Decimal(rng.randint(0, 10_000)) / 100])


def _clicked(d: Drawing) -> list[ClickedLink]:
    """Links of one campaign; the first address clicks one link under two entries, to be added up."""
    rng = d.rng
    people = [d.text.address(number) for number in range(8)]
    entries = []
    for number in range(rng.randint(0, 3)):
        clickers = [(who, rng.randint(1, 9)) for who in rng.sample(people, rng.randint(0, 5))]
        entries.append(ClickedLink(d.text.link(number), d.text.line(), clickers))
    if entries:
        entries.append(ClickedLink(entries[0].url, d.text.line(), [(people[0], 2), *entries[0].clickers[:1]]))
    for entry in entries:
        entry.clickers = list(dict(entry.clickers).items())  # an address stands once in one entry
    return entries


LIST_TEXTS = [
    name for name in TABLES["lists"].columns if name not in ("list_id", "is_double_opt_in", "created_at")
]


def _lists(d: Drawing) -> None:
    for index, number in enumerate(d.ids(d.sizes.lists, 10)):
        values = {name: d.text.body() if name.endswith("message") else d.text.line() for name in LIST_TEXTS}
        labels = {
            str(1000 + 10 * number + field): d.text.line(1) for field in range(0 if index == 1 else 3)
        }  # one list without own fields
        at = None if index == 2 else d.past()  # `N/A` (row 21)
        d.account.lists.append(ContactList(number, values, d.rng.random() < 0.5, at, labels))
    for number in d.ids(3 if d.sizes.lists else 0, 70):
        d.account.audiences[number] = d.text.line()


def _members(d: Drawing) -> None:
    """Contacts in one to three lists; the last list stays empty; two share one address in one list."""
    rng, lists = d.rng, d.account.lists[:-1] or d.account.lists
    odd = texts.ODD_ADDRESSES + (texts.NO_ADDRESSES if d.text.wild else texts.NO_ADDRESSES[:1])
    for index, number in enumerate(d.ids(d.sizes.contacts if lists else 0, 3_000_000_000)):  # beyond 32 bits
        email = odd[index - 1] if 0 < index <= len(odd) else d.text.address(number)
        if index == len(odd) + 1:
            email = d.account.members[0].email
        status = rng.choices([0, 1, 2, 3, 9], [1, 8, 1, 1, 0.3])[0]
        for chosen in rng.sample(lists, min(len(lists), rng.choice([1, 1, 1, 2, 3]))) if index else lists[:1]:
            fields = {}
            for field in chosen.labels:
                if rng.random() < 0.7:
                    fields[field] = rng.choice(["007", "London", d.text.line()])
            at = None if rng.random() < 0.05 else d.past()
            d.account.members.append(Member(chosen.list_id, number, email, status, at, fields))


EVENT_KEYS = ["email-campaign-sent", "automation-triggered", "list-subscription", "mail-sent", "email-sent"]
EVENT_KEYS += ["something-new"]


def _timelines(d: Drawing) -> None:
    for contact in sorted({member.contact_id for member in d.account.members}):
        line = Timeline()
        for _ in range(d.rng.choice([0, 1, 3, 8])):
            line.events.append(_event(d))
        if line.events and d.rng.random() < 0.3:
            # true duplicates: three entries, three rows
            line.events += [replace(line.events[0]), replace(line.events[0])]
        for _ in range(d.rng.choice([0, 0, 1, 3])):
            names = d.rng.sample(["campaign", "source", "medium", "term", "content"], d.rng.randint(0, 5))
            link, utm = d.text.link(d.rng.randint(1, 9)), {name: d.text.line(1) for name in names}
            line.visits.append(Visit(link, utm, _second(d)))
        line.visits += [replace(visit) for visit in line.visits[:1] if d.rng.random() < 0.3]
        for _ in range(d.rng.choice([0, 0, 2])):
            details = [("message", d.text.line()), ("steps", d.rng.randint(1, 5))]
            name, kind, at = d.text.line(2), d.rng.choice(["sms", "email"]), _second(d)
            run = Automation(name, kind, at, details[: d.rng.randint(0, 2)])
            line.automations.append(run)
        line.events.sort(key=lambda event: event.at, reverse=True)
        d.account.timelines[contact] = line


def _second(d: Drawing) -> dt.datetime:
    return d.past() + dt.timedelta(seconds=d.rng.randint(0, 59))


def _event(d: Drawing) -> Event:
    details: list[tuple[str, str, str | int]] = [
        ("send-date", "Send date", d.past().astimezone(d.account.zone).strftime("%m/%d/%Y %I:%M %p")),
        ("open-date", "Open date", "N/A"),
        ("links-clicked", "Links clicked", d.rng.randint(0, 5)),
        ("subject", "Subject", d.text.line()),
    ]
    stamped = d.rng.random() < 0.8
    chosen = d.rng.sample(details, d.rng.randint(0, 4))
    return Event(
        d.rng.choice(EVENT_KEYS), d.text.line(), _second(d) if stamped else d.past(), chosen, stamped
    )


def _coupons(d: Drawing) -> None:
    addresses = sorted({member.email for member in d.account.members if "@" in member.email})
    number = 7000
    for address in addresses:
        for _ in range(d.rng.choice([0, 0, 1, 2])):
            number += d.rng.randint(1, 5)
            at = d.past() if d.rng.random() < 0.5 else None
            d.account.coupons.append(
                Coupon(number, address, f"CODE-{number}", at is not None, at, d.rng.randint(900, 999))
            )


def _people(d: Drawing) -> None:
    made, count = d.account, d.sizes.users
    for number in d.ids(count, 1):
        group = d.text.line(1) if d.rng.random() < 0.6 else None
        business = made.business.business_id + number % 2  # an agency has several businesses
        made.users.append(User(business, number, d.text.line(2), f"user{number}", group, "Active"))
    made.managers = [
        Manager(number, d.text.line(2), d.text.address(number), "Active") for number in d.ids(count // 2, 20)
    ]
    made.groups = [Group(number, d.text.line(1), "Active") for number in d.ids(count // 2, 60)]


def _goals(d: Drawing) -> None:
    rng, made = d.rng, d.account
    domains = [11, 12, 13, 14]  # webhooks name the first three: a goal of the fourth keeps domain NULL
    for number in d.ids(d.sizes.webhooks, 300):
        delay = (rng.randint(0, 2), rng.randint(0, 59), rng.randint(0, 59))
        domain = rng.choice(domains[:3])
        rules = ("All Users", "All Devices", rng.choice(["One Time", "Repeat"]))
        what = (number, d.text.line(2), "On Page Exit", domain)
        where = ("Matches Exactly", d.text.link(number), "HTML Message")
        hook = Webhook(*what, *where, *rules, delay, "Popup")
        made.webhooks.append(hook)
    for number in d.ids(d.sizes.goals, 200):
        links = [d.text.link(index) for index in range(rng.randint(0, 3))]
        action = None
        if rng.random() < 0.5:
            action = (rng.randint(1, 99), rng.choice([d.text.line(), "Action is deleted!"]))
        kind = ("Event Triggered", "Link(s) Clicked", "All of the links are clicked")
        value = Decimal(rng.randint(0, 10**6)) / 100
        made.goals.append(
            Goal(number, rng.choice(domains), d.text.line(2), "Fixed", value, *kind, links, action)
        )


def _own_id_per_list(made: Account) -> None:
    """The other reading of row 4: every membership is a contact with an id (and a timeline) of its own."""
    seen: set[int] = set()
    fresh = max((member.contact_id for member in made.members), default=0)
    for member in made.members:
        if member.contact_id in seen:
            fresh += 1
            made.timelines[fresh] = Timeline(list(made.timelines[member.contact_id].events))
            member.contact_id = fresh
        seen.add(member.contact_id)
