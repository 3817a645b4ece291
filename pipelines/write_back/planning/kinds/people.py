"""Whom a row is about: a contact by its id, or everybody with an address; what the warehouse knows of them.

Not here: what is done to them (`tags`, `activities`, `moves`, `deletions`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from pipelines.write_back.input import values
from pipelines.write_back.input.rows import Cell
from pipelines.write_back.input.values import BadValue
from pipelines.write_back.planning.known import Known, Member


class Who(NamedTuple):
    """What a row says: `email` as written, `key` in lower case, or the contact's id, or both."""

    email: str | None
    key: str | None
    contact_id: int | None

    @property
    def name(self) -> str:
        """How effects call somebody of whom nothing else is known."""
        return self.key or str(self.contact_id)


class Person(NamedTuple):
    """Somebody with what is known: `ids` are the contacts meant, active ones first, then the oldest; empty for an address that
    has to be looked up. `address` is known in lower case whenever the warehouse or the row says it.
    """

    who: Who
    members: list[Member]
    ids: list[int]
    email: str | None

    @property
    def address(self) -> str | None:
        return self.email.strip().lower() if self.email else None

    @property
    def contacts(self) -> list[int | None]:
        """The contacts meant; None stands for those that have to be looked up."""
        return [*self.ids] or [None]

    @property
    def shown(self) -> str:
        return self.email or str(self.who.contact_id)


def read_who(cells: Mapping[str, list[Cell]], index: int) -> Who:
    """BadValue when neither is given, or one of them cannot be."""
    address = cells["email"][index] if "email" in cells else None
    number = cells["contact_id"][index] if "contact_id" in cells else None
    if address is None and number is None:
        raise BadValue("neither an e-mail address nor a contact id is given")
    email = None if address is None else values.address(address)
    return Who(email, email and email.lower(), None if number is None else values.identifier(number, "the contact id"))


class People:
    """Looks up everybody of an input at once."""

    def __init__(self, known: Known, whos: Iterable[Who]) -> None:
        everybody = set(whos)
        self._known = known
        self._by_id = known.by_id(who.contact_id for who in everybody if who.contact_id is not None)
        self._by_address = known.by_address(who.key for who in everybody if who.key is not None and who.contact_id is None)

    def person(self, who: Who, *, must_exist: bool = True) -> Person:
        """BadValue for an id that is nobody's (if it `must_exist`), or that has another address than the row says."""
        if who.contact_id is None:
            members = self._by_address.get(who.key or "", [])
            return Person(who, members, list(dict.fromkeys(member.contact_id for member in members)), who.email)
        members = self._by_id.get(who.contact_id, [])
        if not members and must_exist and self._known.is_all_known:
            raise BadValue(f"there is no contact {who.contact_id} (contacts were read on {self._known.read_on()})")
        addresses = {member.email.strip().lower(): member.email for member in members if member.email}
        if who.key is not None and addresses and who.key not in addresses:
            raise BadValue(f"contact {who.contact_id} has another e-mail address than the row says")
        email = who.email or next(iter(addresses.values()), None)
        return Person(who, members, [who.contact_id], email)
