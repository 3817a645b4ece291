"""The small seeded things of an account by a moment, as (id, thing) pairs for their shelves.

Things hold plain values (unix seconds, numbers); how they are shown is their area's matter.
"""

from __future__ import annotations

from collections.abc import Iterator

from marketing_api.sandbox.account import Account, list_id
from marketing_api.sandbox.roll import DAY
from marketing_api.sandbox.shelf import Thing
from marketing_api.sandbox.subscribers import field_id
from marketing_api.sandbox.words import FIELDS, FIRST_NAMES, LAST_NAMES, LISTS, SITE


def lists(account: Account, now: int) -> Iterator[tuple[int, Thing]]:
    """The contact lists."""
    for number, (name, _, title) in enumerate(LISTS):
        created = account.start + 8 * 3600 + number * 300
        if created > now:
            continue
        yield (
            list_id(number),
            {
                "name": name,
                "form_title": title,
                "email_subject": f"Please confirm: {name}",
                "reply_to": "hello@example.com",
                "from_email": "news@example.com",
                "from_name": account.business.name,
                "confirmation_email": "<p>Please confirm: [confirmation_url]</p>",
                "success_email": f"<p>Welcome to {name}!</p><p>[business_name], [business_address]</p>",
                "confirmation_message": "Almost there: look into your inbox.",
                "success_message": "Thank you & welcome!",
                "error_message": "That did not work, please try again.",
                "double_opt_in": number in (0, 2),
                "notify_email": "office@example.com" if number == 4 else "",
                "notify": "",
                "communications": "0",
                "created_at": created,
                "fields": {field_id(number, position): label for position, label in enumerate(FIELDS)},
            },
        )


def businesses(account: Account, now: int) -> Iterator[tuple[int, Thing]]:
    """The sub-accounts of the agency."""
    for place, (name, contact) in enumerate((("East Pier", "Ines Costa"), ("Old Mill", "Viktor Holm"))):
        opened = account.start + (60 + place * 200) * DAY
        if opened <= now:
            email = f"{contact.split()[0].lower()}@example.net"
            yield (
                account.business.business_id + 501 + place,
                {"name": f"{account.business.name} – {name}", "contact": contact, "email": email},
            )


_GROUPS = ("Administrators", "Marketing", "Front of house", "Shop")
_STAFF = (
    ("Helena Ortega", 0), ("Jonas Berg", 1), ("Priya Shah", 1), ("Theo Russo", 2), ("Mila Novak", None),
    ("Ines Costa", 0), ("Omar Haddad", 2), ("Viktor Holm", 0), ("Grace Lee", 3),
)  # fmt: skip


def groups(account: Account, _: int) -> Iterator[tuple[int, Thing]]:
    for place, name in enumerate(_GROUPS):
        yield 801 + place, {"name": name, "status": "Active"}


def users(account: Account, now: int) -> Iterator[tuple[int, Thing]]:
    """Five of the business, two of each sub-account, and a new one in every quarter."""
    main = account.business.business_id
    homes = [main] * 5 + [main + 501] * 2 + [main + 502] * 2
    for place, (name, group) in enumerate(_STAFF):
        yield (
            601 + place * 3,
            {
                "business": homes[place],
                "fullname": name,
                "username": name.lower().replace(" ", "."),
                "group": None if group is None else 801 + group,
                "status": "Active",
            },
        )
    for quarter in range(1, (now - account.start) // (91 * DAY) + 1):
        name = f"{FIRST_NAMES[quarter * 7 % len(FIRST_NAMES)][0]} {LAST_NAMES[quarter * 11 % len(LAST_NAMES)][0]}"
        leaves = account.start + (quarter * 91 + 400) * DAY
        yield (
            640 + quarter,
            {
                "business": main,
                "fullname": name,
                "username": f"user{quarter:03d}",
                "group": 803,
                "status": "Active" if now < leaves else "Disabled",
            },
        )


def managers(account: Account, _: int) -> Iterator[tuple[int, Thing]]:
    for place, name in enumerate(("Nora Lindberg", "Hassan Ali", "Greta Fischer")):
        email = f"{name.split()[0].lower()}.manager@example.org"
        yield 701 + place, {"fullname": name, "username": email, "email": email, "status": "Active" if place < 2 else "Disabled"}


#: Tracked domains, named by goals and webhooks.
DOMAINS = (21, 22)


def goals(account: Account, now: int) -> Iterator[tuple[int, Thing]]:
    """Six over two domains, made one after the other in the first year."""
    texts = (
        ("Table booked", "event", "links", "all", (f"{SITE}/book", f"{SITE}/book/thanks"), "80"),
        ("Menu downloaded", "event", "links", "any", (f"{SITE}/menu.pdf",), "2.5"),
        ("Three pages seen", "pages", "", "", (), "0"),
        ("Class booked", "url", "", "", (f"{SITE}/classes/thanks",), "45"),
        ("Video watched", "event", "videos", "any", (f"{SITE}/videos/dumplings",), "1"),
        ("Catering request", "event", "form", "", (), "250"),
    )
    for place, (name, kind, event, rule, links, value) in enumerate(texts):
        if account.start + place * 60 * DAY > now:
            continue
        has_action = place in (0, 5)
        yield (
            301 + place * 2,
            {
                "domainid": DOMAINS[place // 4],
                "name": name,
                "type": kind,
                "value_type": "variable" if value == "0" else "fixed",
                "value": value,
                "event_type": event,
                "goal_event_filter": rule,
                "event_links": list(links),
                "action": {"id": 31 + place, "name": "Add tag: guest" if place else "Send to list: Loyalty club"} if has_action else None,
            },
        )


def webhooks(account: Account, now: int) -> Iterator[tuple[int, Thing]]:
    """Five over the same domains."""
    texts = (
        ("Don't leave hungry", "page_exit", "html_msg", f"{SITE}/menu", "popup"),
        ("Newsletter form", "page_entry", "form", f"{SITE}/", "sticky_bar"),
        ("What shall we cook?", "page_entry", "poll", f"{SITE}/classes", "popup"),
        ("After booking", "goal_trigger", "redirection", f"{SITE}/book/thanks", "popup"),
        ("Shop exit", "page_exit", "html_msg", f"{SITE}/shop", "sticky_bar"),
    )
    for place, (name, kind, action, link, style) in enumerate(texts):
        if account.start + place * 90 * DAY <= now:
            yield (
                501 + place * 2,
                {
                    "name": name,
                    "type": kind,
                    "action_type": action,
                    "domainid": DOMAINS[place % 2],
                    "action_url": link,
                    "action_targetusers": ("all", "anonymous", "subscribers")[place % 3],
                    "action_devicefilter": ("all", "desktop", "mobile")[place % 3],
                    "action_frequency": "repeat" if place % 2 else "one_time",
                    "delay_hours": "0",
                    "delay_minutes": str(place),
                    "delay_seconds": str(place * 15 % 60),
                    "action_style": style,
                },
            )
