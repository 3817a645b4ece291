"""Which of the tags that an audience sync claims are removed, because no entry wants them any more.

A claim names an address. It is about the contacts that have the address now. If there are none, it
is about those that had it when the tag was given. A tag is removed once: if somebody else gives it
again, it stays."""

from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import chain
from typing import NamedTuple

from marketing_api.address import normal_form
from write_back.account_state import Known, Member
from write_back.item import Past
from write_back.kinds import TAGS
from write_back.kinds.tags import ADD, find_latest
from write_back.outbox.outbox import Claim, Outbox

#: The beginning of the source's name in pushes of audience syncs.
SOURCE = "activation "


class ClaimedTag(NamedTuple):
    """A claim with the last change of its tag, by contact. `named`: the subjects for which the tag
    is removed; `under_new_names`: subjects of the same people, who have another address by now;
    `is_known`: the warehouse knows a contact of it."""

    subject: str
    pasts: list[Past]
    named: list[str]
    under_new_names: list[str]
    is_known: bool

    def was_given(self, *, is_leaving: bool) -> bool:
        """Whether the tag is there to be removed. `is_leaving`: the entry wanted it until now, so
        it may come from any push; otherwise only from an audience sync."""
        for past in self.pasts:
            is_given = past.content == ADD and past.is_in_force
            is_removable = is_leaving or past.source.startswith(SOURCE)
            if is_given and is_removable:
                return True
        return False

    def is_of_nobody(self, known: Known) -> bool:
        """Whether no list has the person any more, as read after the tag was given."""
        if self.is_known or not known.is_all_known:
            return False
        oldest_reading = min(known.as_of.values())
        return not any(past.is_newer(oldest_reading) for past in self.pasts)


def sort_unwanted(
    known: Known, outbox: Outbox, claims: Mapping[str, Claim], is_wanted: Callable[[str], bool]
) -> tuple[list[str], list[str]]:
    """For claims that their entry does not want any more: the subjects whose tags are removed, and
    the claims that stay, because a tag may have to be removed later."""
    removable: list[str] = []
    left: list[str] = []
    for tag in find_claimed_tags(known, outbox, sorted(claims)):
        if tag.is_of_nobody(known):
            continue
        is_renamed = any(map(is_wanted, tag.under_new_names))
        claim = claims[tag.subject]
        was_given = tag.was_given(is_leaving=claim.is_wanted)
        is_removed = was_given and not is_renamed
        if is_removed:
            removable += tag.named
        # a refused item may be sent again, and an open one may be cancelled
        is_open = any(not past.is_done for past in tag.pasts)
        if is_removed or is_renamed or is_open:
            left.append(tag.subject)
    return removable, left


def find_claimed_tags(known: Known, outbox: Outbox, subjects: Sequence[str]) -> list[ClaimedTag]:
    """The claims of these subjects."""
    contacts, earlier = _find_contacts(known, outbox, subjects)
    contact_ids = set(chain(*contacts.values()))
    members = known.by_id(contact_ids)
    names: dict[str, list[list[str]]] = {}  # subject → the names of each contact
    possible_subjects: set[str] = set()
    for subject in subjects:
        who, tag = split_subject(subject)
        names_by_contact = [_list_names(who, one, members) for one in contacts[subject]]
        names[subject] = names_by_contact or [[who]]
        for name in chain(*names[subject]):
            possible_subjects.add(f"{name}|{tag}")
    pasts = outbox.find_last(known.account, possible_subjects, TAGS)
    found: list[ClaimedTag] = []
    for subject in subjects:
        _, tag = split_subject(subject)
        known_ids = list(filter(members.__contains__, contacts[subject]))
        named = [subject]
        renamed: list[str] = []
        if subject in earlier:
            if known_ids:
                named = [f"{one}|{tag}" for one in known_ids]
            renamed = [f"{name}|{tag}" for name in chain(*names[subject])]
        latest = [find_latest(pasts, several, tag) for several in names[subject]]
        changes = list(filter(None, latest))
        is_known = bool(known_ids)
        found.append(ClaimedTag(subject, changes, named, renamed, is_known))
    return found


def _find_contacts(
    known: Known, outbox: Outbox, subjects: Sequence[str]
) -> tuple[dict[str, list[int]], Collection[str]]:
    """The contacts of each claim; and the claims of an address that nobody has any more, whose
    contacts are those that had it when the tag was given."""
    pairs = {subject: split_subject(subject) for subject in subjects}
    addresses = [who for who, _ in pairs.values()]
    by_address = known.by_address(addresses)
    contacts: dict[str, list[int]] = {}
    for subject, (who, _) in pairs.items():
        members = by_address.get(who, ())
        ids = [member.contact_id for member in members]
        contacts[subject] = list(dict.fromkeys(ids))
    without_contact = [subject for subject, ids in contacts.items() if not ids]
    pasts = outbox.find_last(known.account, without_contact, TAGS)
    item_ids = [past.item_id for past in pasts.values()]
    noted = outbox.find_subjects(item_ids)
    for subject, past in pasts.items():
        _, tag = pairs[subject]
        for noted_subject in noted[past.item_id]:
            name, noted_tag = split_subject(noted_subject)
            is_contact_id = name.isdecimal()
            if is_contact_id and noted_tag == tag:
                contacts[subject].append(int(name))
    return contacts, pasts.keys()


def _list_names(who: str, contact_id: int, members: Mapping[int, Sequence[Member]]) -> list[str]:
    """The names of the contact in subjects: its id, the claim's name for it, and the addresses that
    it has by now."""
    names = [str(contact_id), who]
    for member in members.get(contact_id, ()):
        if member.email:
            address = normal_form(member.email)
            names.append(address)
    return list(dict.fromkeys(names))


def split_subject(subject: str) -> tuple[str, str]:
    """Name and tag."""
    who, _, tag = subject.partition("|")
    return who, tag
