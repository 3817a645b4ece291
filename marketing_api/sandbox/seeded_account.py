"""Contacts and campaigns as the seed has them: made at the start, for the two years before it and
half a year after. Not here: what else the account owns (`world`).

All addresses are at reserved domains and all phones in an area code that is not in use."""

import datetime as dt
import random
import unicodedata
from collections.abc import Iterator

from marketing_api.sandbox.seed import DAY, WORDS
from marketing_api.sandbox.subscribers import CHARACTERS, UNCONFIRMED, Campaign, Character, Contact

HISTORY_DAYS = 730
AHEAD_DAYS = 182
#: The part of the registrations that was uploaded on the first day.
_IMPORTED = 0.2
_FIRST_CONTACT_ID = 310_000


def list_id(number: int) -> int:
    return 1801 + number * 13


def field_ids(number: int) -> list[str]:
    """Of the custom fields of a list."""
    return [str(9100 + number * 10 + position) for position in range(len(WORDS["fields"]))]


def draw_moment(chance: random.Random, start: int, day: int) -> int:
    """A waking hour of the day."""
    return start + day * DAY + int(chance.triangular(7, 22) * 3600)


def make_contacts(chance: random.Random, count: int, start: int, base: int) -> list[Contact]:
    """Contacts in the order of registration. `count` of them exist at the base; some persons are on
    two lists."""
    made = list[Contact]()
    standing = 0
    shares = [one["share"] for one in WORDS["lists"]]
    while standing < count:
        character = chance.choice(CHARACTERS)
        email, texts = _draw_person(chance, character)
        numbers = chance.choices(range(len(shares)), shares, k=2 if chance.random() < 0.12 else 1)
        for number in set(numbers) if standing + 1 < count else numbers[:1]:
            registered_at = _draw_registration(chance, start)
            contact = Contact(
                0,
                list_id(number),
                email,
                registered_at,
                dict(zip(field_ids(number), texts, strict=True)),
            )
            if character.fate == "unconfirmed":
                contact.status = UNCONFIRMED
            else:
                contact.character = character
            if character.deleted_after:
                contact.deleted_at = registered_at + character.deleted_after
            standing += contact.exists(base)
            made.append(contact)
    made.sort(key=lambda contact: contact.registered_at)
    for contact_id, contact in enumerate(made, _FIRST_CONTACT_ID):
        contact.contact_id = contact_id
    return made


def _draw_registration(chance: random.Random, start: int) -> int:
    """Registrations gather pace."""
    if chance.random() < _IMPORTED:
        return start + 9 * 3600
    return draw_moment(chance, start, int(chance.random() ** 0.75 * (HISTORY_DAYS + AHEAD_DAYS)))


def _draw_person(chance: random.Random, character: Character) -> tuple[str, list[str]]:
    """Address and custom fields. Names may hold letters beyond ASCII, the address never does."""
    names = [chance.choice(WORDS[kind]) for kind in ("first_names", "last_names")]
    digits = f"{chance.randrange(10_000_000):07d}"
    domain = chance.choice(WORDS["domains"][character.domains])
    phone = ""
    if chance.random() < 0.7:
        phone = f"+1555{digits}"
    visit = f"{chance.randrange(1, 13):02d}/{chance.randrange(1, 29):02d}/2023"
    return f"{'.'.join(map(_plain, names))}{digits}@{domain}", [
        *names,
        phone,
        chance.choice(WORDS["cities"]),
        visit,
    ]


def _plain(name: str) -> str:
    folded = unicodedata.normalize("NFKD", name.lower())
    return "".join(letter for letter in folded if "a" <= letter <= "z")


def make_campaigns(chance: random.Random, start: int, business: str) -> Iterator[Campaign]:
    """The sent ones in the order of sending, of the time ahead too; drafts; and automations."""
    for number, day in enumerate(_sending_days()):
        sent = start + day * DAY + chance.randrange(9, 17) * 3600
        subject, opening = WORDS["campaigns"][number % len(WORDS["campaigns"])]
        subject = subject.format(month=f"{dt.date.fromtimestamp(sent):%B %Y}")
        created = sent - chance.randrange(24 * DAY, 25 * DAY)
        campaign = _make_campaign(41_000 + number, subject, opening, business, created)
        numbers = chance.choice(WORDS["campaign_lists"])
        campaign.lists = list(map(list_id, numbers))
        campaign.scheduled_at = sent - chance.randrange(12 * DAY, 13 * DAY)
        campaign.sent_at = sent
        campaign.appeal = chance.uniform(0.8, 1.2)
        campaign.has_coupon = "coupon" in f"{subject} {opening}".lower()
        yield campaign
    for number, subject in enumerate(WORDS["drafts"]):
        yield _make_campaign(
            47_000 + number, subject, "", business, start + (90 + number * 170) * DAY
        )
    for number, one in enumerate(WORDS["automations"]):
        created = start + (20 + number * 45) * DAY
        campaign = _make_campaign(
            52_000 + number, one["subject"], one["subject"], business, created
        )
        campaign.name = one["name"]
        campaign.lists = list(map(list_id, one["lists"]))
        campaign.trigger = one
        campaign.is_automated = True
        yield campaign


def _make_campaign(
    campaign_id: int, subject: str, opening: str, business: str, created_at: int
) -> Campaign:
    links = WORDS["links"]
    anchors = "".join(f'<p><a href="{url}">{text}</a></p>' for url, text in links)
    body = (
        f"<html><body><h1>{business}</h1><p>Hello "
        f"[first_name],</p><p>{opening}</p>{anchors}<p>[unsubscribe]</p></body></html>"
    )
    return Campaign(
        campaign_id, subject, subject, body, [], created_at, links=links, from_name=business
    )


def _sending_days() -> Iterator[int]:
    """Ever closer together, at last every eighth day."""
    day = 0
    pause = 66
    while (day := day + pause) < HISTORY_DAYS + AHEAD_DAYS:
        yield day
        pause = max(8, pause - 3)
