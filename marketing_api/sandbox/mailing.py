"""What becomes of campaigns: who receives, opens, clicks and leaves. The timeline of a contact and
the statistics of a campaign show the same mails."""

import random
from collections.abc import Iterable
from dataclasses import dataclass, field

from marketing_api.sandbox.seed import DAY, NEVER, Thing
from marketing_api.sandbox.subscribers import BOUNCED, Character, Contact

#: Nobody opens a mail later than this.
_LONGEST_S = 14 * DAY
_BOUNCES_AFTER_S = 45
_LEAVES_AFTER_S = 120  # from opening to the click on "unsubscribe"


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
    from_email: str = "news@example.com"
    from_name: str = ""
    is_automated: bool = False
    mails: "list[Mail]" = field(default_factory=list)

    def group(self, now: int) -> str:
        if self.is_automated:
            return "Automation"
        if now < self.scheduled_at:
            return "Draft"
        return "Sent" if self.sent_at <= now else "Scheduled"

    def send(self, chance: random.Random, contacts: Iterable[Contact]) -> None:
        """To those of its lists whom it reaches; what each does with it is drawn."""
        for contact in contacts:
            if contact.list_id in self.lists and contact.character is not None:
                sent_at = self._due_at(contact, contact.character)
                if contact.receives(sent_at):
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
        return due if is_meant else NEVER

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
            self.sent_at = self.opened_at = self.clicked_at = self.unsubscribed_at = (
                self.bounced_at
            ) = NEVER


def _draw_mail(chance: random.Random, campaign: Campaign, contact: Contact, sent_at: int) -> Mail:
    character, mail = contact.character, Mail(campaign, contact, sent_at)
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
