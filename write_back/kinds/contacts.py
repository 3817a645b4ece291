"""Contact syncs: people are added to lists, or their status and custom fields change, in as few
requests as possible. The steps are in files of their own:

    contact_planning       read the rows, and compare them with the known contacts
    contact_items          the request for lists that need the same change
    contact_requests       the look-up just before sending, and the requests that follow from it
    contact_verification   read back, and compare with what was sent

The change decides the operation. `synccontact` adds a contact to lists or changes its status: the
person is looked up on all lists first (`consent`), and the request always has a status.
`editcontact` changes anything else, by the contact's id: it adds nobody, leaves the status, and
reaches the person under a new address, too."""

from collections.abc import Sequence

from marketing_api.contact_lookup import Directory
from marketing_api.exchange import Response
from marketing_api.records.contacts import EDITCONTACT
from marketing_api.write_result import new_id
from write_back.consent import may_subscribe
from write_back.input.columns import Spec
from write_back.input.values import STATUS_WORDS
from write_back.item import EffectKind
from write_back.kinds.contact_planning import ContactsPlanning
from write_back.kinds.contact_requests import check_unchanged, edit_by_id, edit_or_sync
from write_back.kinds.contact_verification import read_contacts_back
from write_back.kinds.kind import Kind, Outgoing
from write_back.outbox.outbox import Entry
from write_back.verification import ReadBack


class Contacts(Kind):
    """Effects: `address|list id`, with the content of the request."""

    columns = Spec(
        {
            "email": ("email",),
            "list": ("list_id", "list"),
            "status": ("status",),
            "ip_address": ("ip_address",),
        },
        (("email",), ("list",)),
        takes_fields=True,
    )
    effect = EffectKind.JOINS
    planning = ContactsPlanning
    unknown_addresses = (
        "not in the warehouse: the service adds each one, or updates it if it exists"
    )

    def prepare_requests(
        self, entry: Entry, contact_ids: Sequence[int], directory: Directory
    ) -> Outgoing:
        """People who could be subscribed are looked up first, and so are people who are
        reverted."""
        email = entry.email or ""
        reverted = entry.expected.reverted
        if reverted is not None:
            (list_id,) = entry.expected.lists
            check_unchanged(entry, reverted, directory.find_on_list(email, list_id))
        if entry.operation == EDITCONTACT.name:
            return edit_by_id(entry)
        status = entry.params.get("status")
        if status is None or may_subscribe(STATUS_WORDS.get(status.lower())):
            return edit_or_sync(entry, directory.find_now(email))
        return super().prepare_requests(entry, contact_ids, directory)

    def new_contact_id(self, response: Response) -> int | None:
        return new_id(response)

    def read_back(self, reading: ReadBack, entries: list[Entry], how: str) -> None:
        """`all`, a `sample` (5 %, and everything that was ever unknown; all when one of them has
        drifted) or `none` (only what is still unknown, or has drifted)."""
        read_contacts_back(reading, entries, how)


CONTACTS = Contacts("contacts")
