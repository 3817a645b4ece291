"""The contacts of an account, its campaigns, and the mails that contacts receive, open and click.
The timeline of a contact and the statistics of a campaign show the same mails.

Not here: the wording of responses (`contacts`, `campaigns`, `timelines`)."""

import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from marketing_api.sandbox.seed import DAY, NEVER, WORDS, Thing

UNCONFIRMED, ACTIVE, UNSUBSCRIBED, BOUNCED = range(4)
#: Nobody opens a mail later than this.
_LONGEST_S = 14 * DAY
_BOUNCES_AFTER_S = 45
_LEAVES_AFTER_S = 120  # from opening to the click on "unsubscribe"


@dataclass(frozen=True, slots=True)
class Character:
    """What a seeded contact does. Parts are of 1024; `leaves_after` counts received campaigns (0:
    stays)."""

    name: str
    opens: int
    clicks: int  # of the opened
    fate: str = "stays"  # or unsubscribes, bounces, unconfirmed
    leaves_after: int = 0
    deleted_after: int = 0  # seconds after registration; 0: never
    domains: str = "common"  # kind of domains in `words.toml`


#: Each character as often as it occurs among fifty contacts.
CHARACTERS = [Character(**one) for count, one in WORDS["characters"] for _ in range(count)]


@dataclass(slots=True)
class Contact:
    """An entry of a list. Times are unix seconds; `values` are custom-field values by field id."""

    contact_id: int
    list_id: int
    email: str
    registered_at: int
    values: dict[str, str]
    status: int = ACTIVE
    deleted_at: int = NEVER
    #: When the status becomes that of a contact that left.
    leaves_at: int = NEVER
    leaves_as: int = UNSUBSCRIBED
    character: Character | None = None  # None: nothing is sent to it (any more)
    mails: "list[Mail]" = field(default_factory=list)  # of the time ahead, too
    tags: dict[str, int] = field(default_factory=dict)  # when each was added
    activities: list[tuple[int, str]] = field(default_factory=list)

    def exists(self, now: int) -> bool:
        return self.registered_at <= now < self.deleted_at

    def status_at(self, now: int) -> int:
        if self.leaves_at <= now:
            return self.leaves_as
        return self.status

    def mails_by(self, now: int) -> "list[Mail]":
        """The mails that were sent by `now`, oldest first."""
        return sorted(
            (mail for mail in self.mails if mail.sent_at <= now), key=lambda mail: mail.sent_at
        )

    def set_status(self, status: int, now: int) -> None:
        """The status from now on, even if the seed has another one. Nothing more is sent to the
        contact."""
        self.status = status
        self.leaves_at = NEVER
        self.deleted_at = NEVER
        self.character = None
        for mail in self.mails:
            mail.cancel(now)


class Subscribers:
    """Every contact of an account by id, of the past and of the time ahead too."""

    def __init__(self, contacts: Iterable[Contact]) -> None:
        self.contacts = {contact.contact_id: contact for contact in contacts}

    def add(self, contact: Contact) -> None:
        self.contacts[contact.contact_id] = contact

    def get(self, contact_id: int, now: int) -> Contact | None:
        """The contact, None when there is none (any more)."""
        contact = self.contacts.get(contact_id)
        if contact is not None and contact.exists(now):
            return contact
        return None

    def existing(self, now: int) -> Iterator[Contact]:
        return (contact for contact in self.contacts.values() if contact.exists(now))

    def on_list(self, list_id: int, now: int) -> list[Contact]:
        return [contact for contact in self.existing(now) if contact.list_id == list_id]

    def by_email(self, email: str, now: int) -> list[Contact]:
        """The contacts with that address, one per list at most (unless written otherwise)."""
        folded = email.lower()
        return [one for one in self.existing(now) if email and one.email.lower() == folded]

    def by_phone(self, phone: str, now: int) -> list[Contact]:
        digits = _digits(phone)
        if not digits:
            return []
        return [one for one in self.existing(now) if digits in map(_digits, one.values.values())]

    def edit(
        self, contact: Contact, now: int, email: str, status: int | None, values: dict[str, str]
    ) -> None:
        """Change what is given; a new status ends the receiving of mails."""
        if status is not None and status != contact.status_at(now):
            contact.set_status(status, now)
        if email:
            contact.email = email
        contact.values.update(values)

    def move(self, contact: Contact, list_id: int, now: int) -> None:
        contact.set_status(contact.status_at(now), now)
        contact.list_id = list_id

    def delete(self, contact: Contact, now: int) -> None:
        contact.set_status(contact.status_at(now), now)
        contact.deleted_at = now


def _digits(text: str) -> str:
    """Of a phone number, as everybody writes it."""
    return "".join(letter for letter in text if letter.isdigit()).removeprefix("00")


@dataclass(slots=True)
class Campaign:
    """One mailing. `lists` are list ids, `links` (address, text); times are unix seconds."""

    campaign_id: int
    name: str
    subject: str
    body: str
    lists: list[int]
    created_at: int
    scheduled_at: int = NEVER
    sent_at: int = NEVER
    links: list[list[str]] = field(default_factory=list)
    appeal: float = 1.0  # how much better or worse than usual it is opened
    has_coupon: bool = False
    trigger: Thing = field(default_factory=dict)  # of a seeded automation, as in `words.toml`
    reply_to: str = "hello@example.com"
    fromemail: str = "news@example.com"
    from_name: str = ""
    is_automated: bool = False
    mails: "list[Mail]" = field(default_factory=list)

    def group(self, now: int) -> str:
        if self.is_automated:
            return "Automation"
        if now < self.scheduled_at:
            return "Draft"
        if self.sent_at <= now:
            return "Sent"
        return "Scheduled"

    def send(self, chance: random.Random, contacts: Iterable[Contact]) -> None:
        """To those of its lists whom it reaches; what each does with it is drawn."""
        for contact in contacts:
            if contact.list_id in self.lists and contact.character is not None:
                sent_at = self._due_at(contact, contact.character)
                if contact.exists(sent_at) and sent_at < contact.leaves_at:
                    mail = _draw_mail(chance, self, contact, sent_at)
                    self.mails.append(mail)
                    contact.mails.append(mail)

    def _due_at(self, contact: Contact, character: Character) -> int:
        """When it is sent to the contact: an automation some time after the registration, to
        some."""
        if not self.trigger:
            return self.sent_at
        due = contact.registered_at + int(self.trigger["after"])
        is_meant = character.name in self.trigger["characters"] and due >= self.created_at
        if is_meant:
            return due
        return NEVER

    def count_mails(self, now: int) -> dict[str, int]:
        """What has happened by `now`."""
        names = ("sent", "opened", "bounced", "unsubscribed")
        return {
            name: sum(getattr(mail, f"{name}_at") <= now for mail in self.mails) for name in names
        }

    def cancel(self, now: int) -> None:
        """What is not sent yet never will be."""
        for mail in self.mails:
            mail.cancel(now)


@dataclass(slots=True)
class Mail:
    """A campaign as one contact receives it, and what it does with it, whether or not it has
    happened yet."""

    campaign: Campaign
    contact: Contact
    sent_at: int
    opened_at: int = NEVER
    clicked_at: int = NEVER
    clicks: tuple[tuple[int, int], ...] = ()  # position of the link, and how often
    redeemed_at: int = NEVER
    unsubscribed_at: int = NEVER
    bounced_at: int = NEVER

    def cancel(self, now: int) -> None:
        if self.sent_at >= now:
            self.sent_at = self.opened_at = self.clicked_at = NEVER
            self.unsubscribed_at = self.bounced_at = NEVER


def _draw_mail(chance: random.Random, campaign: Campaign, contact: Contact, sent_at: int) -> Mail:
    character = contact.character
    mail = Mail(campaign, contact, sent_at)
    assert character is not None
    is_last = not campaign.is_automated and len(contact.mails) + 1 == character.leaves_after
    if is_last and character.fate == "bounces":
        contact.leaves_as = BOUNCED
        contact.leaves_at = mail.bounced_at = sent_at + _BOUNCES_AFTER_S
        return mail
    is_seen = campaign.trigger.get("kind") != "sms"  # a text message can't be seen to be opened
    if is_last or (is_seen and chance.random() < character.opens / 1024 * campaign.appeal):
        # Half of them within an hour and a half.
        mail.opened_at = sent_at + 60 + min(int(chance.lognormvariate(8.5, 1.6)), _LONGEST_S)
        if is_last:
            contact.leaves_at = mail.unsubscribed_at = mail.opened_at + _LEAVES_AFTER_S
        _draw_reaction(chance, mail, character.clicks / 1024 * (not is_last))
    return mail


def _draw_reaction(chance: random.Random, mail: Mail, click_rate: float) -> None:
    """Whether a coupon is redeemed, and which links are clicked."""
    links = mail.campaign.links
    if mail.campaign.has_coupon and chance.random() < 0.4:
        mail.redeemed_at = mail.opened_at + chance.randrange(DAY // 4, 20 * DAY)
    if links and chance.random() < click_rate:
        mail.clicked_at = mail.opened_at + chance.randrange(30, 1200)
        places = chance.sample(range(len(links)), min(len(links), chance.choice((1, 1, 1, 2))))
        mail.clicks = tuple((place, chance.choice((1, 1, 1, 1, 2, 4))) for place in places)
