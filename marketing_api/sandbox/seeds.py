"""The small seeded things of an account by a moment, as (id, thing) pairs for their shelves.

Things hold plain values (unix seconds, numbers); how they are shown is their area's matter.
"""

from __future__ import annotations

from collections.abc import Iterator

from marketing_api.sandbox.account import Account, list_id
from marketing_api.sandbox.shelf import Thing
from marketing_api.sandbox.subscribers import field_id
from marketing_api.sandbox.words import FIELDS, LISTS


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
