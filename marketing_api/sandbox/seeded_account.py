"""An account as its seed has it: who registers on which list and when, and the campaigns. It is all made at
the start, for the two years before it and the time after. Not here: what else the account owns (`world`).

All addresses are at reserved domains and all phones in an area code that is not in use."""

import datetime as dt
import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from marketing_api.sandbox.mailing import Campaign, Links
from marketing_api.sandbox.seed import DAY, WORDS, pick
from marketing_api.sandbox.subscribers import ACTIVE, CHARACTERS, NEVER, UNCONFIRMED, Contact

HISTORY_DAYS, AHEAD_DAYS = 730, 365
#: The part of a list that was uploaded on its first day; these contacts saw no sign-up form.
_IMPORTED = 0.3
#: Registrations gather pace: by the fraction f of the history, f ** _GROWTH of the later sign-ups are in.
_GROWTH = 1.3
_FIRST_CONTACT_ID, _LISTS = 310_000, 8
_SENT_IN_HISTORY, _SENT_EVERY_DAYS = 20, 8


@dataclass(frozen=True, slots=True)
class Origin:
    """What determines an account: it shows exactly `contacts` contacts at `base` (unix seconds), two years
    after its start."""

    seed: int = 1
    contacts: int = 600
    base: int = 0
    timezone: str = "UTC"


def list_id(number: int) -> int:
    return 1801 + number * 13


def field_ids(list_number: int) -> tuple[str, ...]:
    return tuple(str(9100 + list_number * 10 + position) for position in range(len(WORDS["fields"])))


def make_contacts(origin: Origin, start: int) -> list[Contact]:
    """By list, in the order of registration. Some entries of the smaller lists are persons of the first."""
    chance, made = random.Random(origin.seed), list[Contact]()
    shares = [int(origin.contacts * one["share"]) for one in WORDS["lists"]]
    shares[0] += origin.contacts - sum(shares)
    first = list[Contact]()
    for number, size in enumerate(shares):
        entries = sorted(
            _register(chance, number, size, start, origin.base), key=lambda contact: contact.registered_at
        )
        for index, contact in enumerate(entries):
            contact.contact_id = _FIRST_CONTACT_ID + index * _LISTS + number
            if number and index % 8 == 0 and index * 2 + number < len(first):
                contact.email = first[index * 2 + number].email
                same = zip(field_ids(number), first[index * 2 + number].values.values(), strict=False)
                contact.values = dict(same)
        first = first or entries
        made += entries
    return made


def _register(chance: random.Random, number: int, size: int, start: int, base: int) -> Iterator[Contact]:
    """Entries of a list, without ids, until so many stand at the base; and those of the year ahead."""
    standing, registered = 0, 0
    while standing < size:
        is_imported = chance.random() < _IMPORTED
        past = chance.random() ** (1 / _GROWTH) * (HISTORY_DAYS - 1)
        at = (
            start + 9 * 3600 + number * 1800 + chance.randrange(1500)
            if is_imported
            else _waking(start + DAY, past)
        )
        if at <= base:
            contact = _person(chance, number, at, is_imported)
            standing += contact.exists(base)
            registered += 1
            yield contact
    for _ in range(int(registered * (1 - _IMPORTED) * _GROWTH * AHEAD_DAYS / HISTORY_DAYS)):
        at = _waking(start, HISTORY_DAYS + chance.random() * AHEAD_DAYS)
        yield _person(chance, number, max(at, base + 1), is_imported=False)


def _waking(start: int, days: float) -> int:
    """A moment so many days after a start, mostly between 7 and 22 o'clock."""
    part = days % 1
    hours = part * 150 if part < 0.05 else 7 + (part - 0.05) * 16.6
    return start + int(days) * DAY + int(hours * 3600)


def _person(chance: random.Random, number: int, at: int, is_imported: bool) -> Contact:
    """Names may hold letters beyond ASCII, the address never does."""
    character = chance.choice(CHARACTERS)
    (first, plain_first), (last, plain_last) = (
        chance.choice(WORDS["first_names"]),
        chance.choice(WORDS["last_names"]),
    )
    digits = chance.randrange(10_000_000)
    domain = chance.choice(WORDS["domains"][character.domains])
    phone = f"+1555{digits:07d}" if chance.random() < 0.7 else ""
    texts, fields = (first, last, phone, chance.choice(WORDS["cities"])), field_ids(number)
    return Contact(
        0,
        list_id(number),
        f"{plain_first}.{plain_last}{digits}@{domain}",
        at,
        dict(zip(fields, texts, strict=False)),
        UNCONFIRMED if character.fate == "unconfirmed" else ACTIVE,
        deleted_at=at + character.deleted_after if character.deleted_after else NEVER,
        character=character,
        is_imported=is_imported,
        visit_field=fields[-1],
        visit_days=chance.randrange(20, 147),
        visit_phase=chance.randrange(512),
    )


def make_campaigns(seed: int, start: int, business: str) -> Iterator[Campaign]:
    """The sent ones in the order of their creation, of the year ahead too; drafts; and automations."""
    chance = random.Random(seed + 1)
    ahead = AHEAD_DAYS // _SENT_EVERY_DAYS
    for ordinal in range(_SENT_IN_HISTORY + ahead):
        # Ever closer together within the history, every eighth day after it.
        days = HISTORY_DAYS + 6 + _SENT_EVERY_DAYS * (ordinal - _SENT_IN_HISTORY)
        if ordinal < _SENT_IN_HISTORY:
            days = int(HISTORY_DAYS * (1 - (1 - (ordinal + 0.5) / _SENT_IN_HISTORY) ** 1.25))
        sent = start + days * DAY + chance.randrange(9, 17) * 3600 + chance.randrange(4) * 900
        month = dt.datetime.fromtimestamp(sent, dt.UTC).strftime("%B %Y")
        subject, opening = (text.format(month=month) for text in pick("campaigns", ordinal))
        links = [pick("links", ordinal + position) for position in range(chance.randrange(2, 5))]
        yield Campaign(
            campaign_id=41_000 + ordinal * 7 + chance.randrange(5),
            name=subject,
            subject=subject,
            body=_body(business, opening, links),
            lists=_list_ids(pick("campaign_lists", ordinal)),
            created_at=sent - 24 * DAY - chance.randrange(40_000),
            scheduled_at=sent - 12 * DAY - chance.randrange(30_000),
            sent_at=sent,
            links=links,
            appeal=chance.uniform(0.8, 1.2),
            has_coupon="coupon" in (subject + opening).lower(),
            from_name=business,
        )
    for place, subject in enumerate(WORDS["drafts"]):
        created, body = start + (90 + place * 170) * DAY + 40_000, _body(business, "", ())
        yield Campaign(47_000 + place * 3, subject, subject, body, (), created, from_name=business)
    for place, one in enumerate(WORDS["automations"]):
        yield Campaign(
            campaign_id=52_000 + place * 11,
            name=one["name"],
            subject=one["subject"],
            body=_body(business, one["subject"] + ".", WORDS["links"][:2]),
            lists=_list_ids(one["lists"]),
            created_at=start + (20 + place * 45) * DAY + 36_000,
            links=WORDS["links"][place : place + 2],
            trigger=one,
            is_automated=True,
            from_name=business,
        )


def _body(business: str, opening: str, links: Links) -> str:
    anchors = "".join(f'<p><a href="{url}">{text}</a></p>' for url, text in links)
    return (
        f"<html><body><h1>{business}</h1><p>Hello "
        f"[first_name],</p><p>{opening}</p>{anchors}<p>[unsubscribe]</p></body></html>"
    )


def _list_ids(numbers: Iterable[int]) -> tuple[int, ...]:
    return tuple(map(list_id, numbers))
