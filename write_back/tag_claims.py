"""Which tags that an audience sync claims are to be taken away, since nobody wants them any more.

A claim names an address. It stands for the contacts that have the address now, or for those that
had it when the tag was given. A tag is taken away once: what somebody else has given after that is
theirs."""

from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import chain
from typing import NamedTuple

from marketing_api.address import normal_form
from write_back.account_state import Known, Member
from write_back.item import Past
from write_back.kinds import TAGS
from write_back.kinds.tags import ADD, find_latest
from write_back.outbox.outbox import Claim, Outbox

#: What the source of an audience sync's push begins with.
SOURCE = "activation "


class ClaimedTag(NamedTuple):
    """A claim, and what was done last about its tag, by contact. `named`: as subjects, by which it
    is taken away; `under_new_names`: the same as subjects of people who have another address by
    now; `is_known`: the warehouse knows a contact of it."""

    subject: str
    pasts: list[Past]
    named: list[str]
    under_new_names: list[str]
    is_known: bool

    def was_given(self, *, is_leaving: bool) -> bool:
        """`is_leaving`: the entry wanted it until now; else only what an entry gave is given by
        one."""
        return any(
            past.content == ADD
            and past.is_in_force
            and (is_leaving or past.source.startswith(SOURCE))
            for past in self.pasts
        )

    def is_of_nobody(self, known: Known) -> bool:
        """Whether no list has the person any more, as read after the tag was given: nothing is
        left."""
        if self.is_known or not known.is_all_known:
            return False
        return not any(past.is_newer(min(known.as_of.values())) for past in self.pasts)


def sort_unwanted(
    known: Known, outbox: Outbox, claims: Mapping[str, Claim], is_wanted: Callable[[str], bool]
) -> tuple[list[str], list[str]]:
    """Of claims that their entry does not want any more: the tags that were given and nobody wants,
    by whom they are taken away from; and the claims of which a tag may have to be taken away
    later."""
    removable: list[str] = []
    left: list[str] = []
    for tag in find_claimed_tags(known, outbox, sorted(claims)):
        if tag.is_of_nobody(known):
            continue
        is_renamed = any(map(is_wanted, tag.under_new_names))
        was_given = not is_renamed and tag.was_given(is_leaving=claims[tag.subject].is_wanted)
        removable += tag.named if was_given else []
        # what was refused may be tried again, and what is under way be cancelled
        if was_given or is_renamed or any(not past.is_done for past in tag.pasts):
            left.append(tag.subject)
    return removable, left


def find_claimed_tags(known: Known, outbox: Outbox, subjects: Sequence[str]) -> list[ClaimedTag]:
    contacts, earlier = _find_contacts(known, outbox, subjects)
    members = known.by_id({contact_id for several in contacts.values() for contact_id in several})
    names = {
        subject: [_list_names(who, one, members) for one in contacts[subject]] or [[who]]
        for subject, (who, _) in zip(subjects, map(_split_subject, subjects), strict=True)
    }
    everything = {
        f"{name}|{_split_subject(subject)[1]}"
        for subject, several in names.items()
        for name in chain(*several)
    }
    pasts = outbox.find_last(known.account, everything, TAGS)

    def describe_tag(subject: str) -> ClaimedTag:
        tag = _split_subject(subject)[1]
        known_ids = [one for one in contacts[subject] if one in members]
        last = filter(None, (find_latest(pasts, names, tag) for names in names[subject]))
        if subject not in earlier:
            return ClaimedTag(subject, list(last), [subject], [], bool(known_ids))
        named = [f"{one}|{tag}" for one in known_ids] or [subject]
        renamed = [f"{name}|{tag}" for name in chain(*names[subject])]
        return ClaimedTag(subject, list(last), named, renamed, bool(known_ids))

    return list(map(describe_tag, subjects))


def _find_contacts(
    known: Known, outbox: Outbox, subjects: Sequence[str]
) -> tuple[dict[str, list[int]], Collection[str]]:
    """The contacts of each claim; and the claims of an address that nobody has any more, whose
    contacts are those that had it when the tag was given."""
    by_address = known.by_address(who for who, _ in map(_split_subject, subjects))
    contacts = {
        subject: list(
            dict.fromkeys(one.contact_id for one in by_address.get(_split_subject(subject)[0], ()))
        )
        for subject in subjects
    }
    pasts = outbox.find_last(
        known.account, (one for one, found in contacts.items() if not found), TAGS
    )
    noted = outbox.find_subjects(past.item_id for past in pasts.values())
    for subject, past in pasts.items():
        same = (
            who
            for who, tag in map(_split_subject, noted[past.item_id])
            if tag == _split_subject(subject)[1]
        )
        contacts[subject] = [int(who) for who in same if who.isdecimal()]
    return contacts, pasts.keys()


def _list_names(who: str, contact_id: int, members: Mapping[int, Sequence[Member]]) -> list[str]:
    """What the contact is called: its id, as the claim names it, and its addresses by now."""
    now = (normal_form(one.email) for one in members.get(contact_id, ()) if one.email)
    return list(dict.fromkeys([str(contact_id), who, *now]))


def _split_subject(subject: str) -> tuple[str, str]:
    who, _, tag = subject.partition("|")
    return who, tag
