"""The account as plain truth: what the business has, in UTC and in Python's own types.

Not here: how the service words it (`answers`), what a table makes of it (`truth`), how it is drawn
(`generate`)."""

import datetime as dt
from dataclasses import dataclass, field
from decimal import Decimal
from zoneinfo import ZoneInfo


@dataclass
class Business:
    business_id: int
    name: str
    contact: str
    phone: str
    service_name: str
    package: str


@dataclass
class DirectReview:
    review_id: int
    email: str
    phone: str
    at: dt.datetime
    inquiry: str
    notes: str
    rating: str


@dataclass
class OnlineReview:
    username: str
    at: dt.datetime
    inquiry: str
    rating_raw: str
    rating: float | None
    url: str


@dataclass
class Channel:
    """One review site; `reviews` None when the site has no `data` member at all."""

    name: str
    average: float | None
    reviews: list[OnlineReview] | None


@dataclass
class Mention:
    polarity: str  # positive, negative, neutral
    channel: str
    on: dt.date
    inquiry: str


@dataclass
class DayStats:
    """What reputation/stats says of one day; a part that is None has no entry for the day."""

    on: dt.date
    good_bad: tuple[int, int] | None
    mentions: dict[str, int] | None
    views: int | None


@dataclass
class Profile:
    network: str  # as displayed: Facebook
    kind: str  # singular: page
    profile_id: str
    name: str
    screen_name: str
    full_name: str


@dataclass
class Post:
    post_id: int
    network: str  # lower case
    kind: str
    channel_id: str
    channel_name: str
    at: dt.datetime
    message: str
    photo: tuple[str, str] | None
    title: str
    uid: str
    image: str
    profile: str


@dataclass
class Link:
    link_id: int
    short_url: str
    real_url: str
    message: str
    at: dt.datetime
    tracks: int
    clicks: dict[str, int]


@dataclass
class ClickedLink:
    url: str
    message: str
    clickers: list[tuple[str, int]]


@dataclass
class Campaign:
    campaign_id: int
    group: str  # Draft, Sent, Scheduled, Automation
    subject: str
    message: str
    reply_to: str
    from_email: str
    from_name: str
    at: dt.datetime
    stats: dict[str, tuple[int, Decimal]]  # open, unopened, bounced, unsubscribed -> count, percent
    clicks: list[ClickedLink]

    @property
    def type(self) -> str:
        return "automated" if self.group == "Automation" else "standard"


@dataclass
class ContactList:
    list_id: int
    texts: dict[str, str]  # by column name of the design, without name and notify_email's special cases
    double_opt_in: bool
    at: dt.datetime | None
    labels: dict[str, str]  # custom field id -> label


@dataclass
class Member:
    """One contact in one list. The same contact may stand in several lists, under one id or under several."""

    list_id: int
    contact_id: int
    email: str
    status: int
    at: dt.datetime | None
    fields: dict[str, str]


@dataclass
class Event:
    key: str
    snippet: str
    at: dt.datetime
    details: list[tuple[str, str, str | int]]
    is_stamped: bool = True  # has `timestamp` beside `datetime`; otherwise whole minutes


@dataclass
class Visit:
    link: str
    utm: dict[str, str]
    at: dt.datetime


@dataclass
class Automation:
    name: str
    type: str
    at: dt.datetime
    details: list[tuple[str, str | int]]


@dataclass
class Timeline:
    events: list[Event] = field(default_factory=list)
    visits: list[Visit] = field(default_factory=list)
    automations: list[Automation] = field(default_factory=list)


@dataclass
class Coupon:
    coupon_id: int
    email: str
    code: str
    redeemed: bool
    redeemed_at: dt.datetime | None
    campaign_id: int


@dataclass
class User:
    business_id: int
    user_id: int
    full_name: str
    username: str
    group: str | None
    status: str


@dataclass
class Manager:
    manager_id: int
    full_name: str
    email: str
    status: str


@dataclass
class Group:
    group_id: int
    name: str
    status: str


@dataclass
class Goal:
    goal_id: int
    domain_id: int
    name: str
    value_type: str
    value: Decimal
    type: str
    event_type: str
    rule: str
    links: list[str]
    action: tuple[int, str] | None


@dataclass
class Webhook:
    webhook_id: int
    name: str
    type: str
    domain_id: int | None
    url_filter: str
    url_link: str
    action_type: str
    execute_for: str
    device_filter: str
    interval: str
    delay: tuple[int, int, int]
    style: str


@dataclass
class Account:
    key: str
    zone_name: str | None  # None: the service does not tell
    now: dt.datetime
    business: Business
    direct_reviews: list[DirectReview] = field(default_factory=list)
    channels: list[Channel] = field(default_factory=list)
    mentions: list[Mention] = field(default_factory=list)
    days: list[DayStats] = field(default_factory=list)
    profiles: list[Profile] = field(default_factory=list)
    posts: list[Post] = field(default_factory=list)
    links: list[Link] = field(default_factory=list)
    campaigns: list[Campaign] = field(default_factory=list)
    lists: list[ContactList] = field(default_factory=list)
    audiences: dict[int, str] = field(default_factory=dict)
    members: list[Member] = field(default_factory=list)
    timelines: dict[int, Timeline] = field(default_factory=dict)
    coupons: list[Coupon] = field(default_factory=list)
    users: list[User] = field(default_factory=list)
    managers: list[Manager] = field(default_factory=list)
    groups: list[Group] = field(default_factory=list)
    goals: list[Goal] = field(default_factory=list)
    webhooks: list[Webhook] = field(default_factory=list)

    @property
    def zone(self) -> ZoneInfo:
        return ZoneInfo(self.zone_name or "UTC")

    @property
    def today(self) -> dt.date:
        return self.now.astimezone(self.zone).date()
