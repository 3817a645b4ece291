"""What every kind of push has to know: its columns, planning, order, request forms, look-up,
read-back and wording.

Belongs here: what there is to know, with what holds for most kinds. Not here: any single kind.
"""

from collections.abc import Mapping, Sequence
from typing import ClassVar, NamedTuple

from marketing_api.contact_lookup import Directory, Fetch, Found
from marketing_api.exchange import Response
from marketing_api.operation import Call
from marketing_api.operations import find
from write_back.input.columns import Spec
from write_back.item import EffectKind, Expected
from write_back.outbox.outbox import Entry, Outbox
from write_back.planning import Planning
from write_back.unknown_outcomes import Presence
from write_back.verification import ReadBack

#: Columns by which any kind may name a person, and one group of `Spec.needs`.
WHO: Mapping[str, tuple[str, ...]] = {"email": ("email",), "contact_id": ("contact_id",)}
BY_WHO = ("email", "contact_id")


class Outgoing(NamedTuple):
    """What is sent of an entry, one request after the other. `left`: why nothing is, where there is
    none. `expected`: what is to be seen of it, where that is known better by now."""

    calls: Sequence[Call]
    left: str = ""
    expected: Expected | None = None


class Kind(str):
    """One kind of push: its name, as commands, files and tables have it, with everything that is
    known about it.

    A kind sets `columns`, `planning` and `effect`, and overrides the methods in which it differs:

        class Notes(Kind):
            columns = Spec({**WHO, "note": ("note",)}, (BY_WHO, ("note",)))
            planning = NotesPlanning  # its `plan_rows` gives each row one fate
            effect = EffectKind.TAGS

        NOTES = Notes("notes")

    `prepare_requests` and `look_for_item` run in worker threads and change nothing in the outbox.
    Both may raise what a look-up raises; `Refused` in `prepare_requests` rejects the item."""

    columns: ClassVar[Spec]
    planning: ClassVar[type[Planning]]

    effect: ClassVar[EffectKind]
    #: What a plan says of addresses that the warehouse does not know. Tags are added by address,
    #: for others the contact is looked up.
    unknown_addresses: ClassVar[str] = (
        "not in the warehouse: each is looked up at the service, and rows with addresses "
        "unknown there are rejected"
    )

    @property
    def is_idempotent(self) -> bool:
        """Twice does what once does. What is not so is looked for (`look_for_item`) before a
        request whose outcome is unknown is sent again."""
        return self.effect is not EffectKind.NOTES

    # ---- sending

    def choose_contacts(self, found: Sequence[Found]) -> tuple[int, ...]:
        """The contacts that an item by address is for: one, an active one first, then the oldest
        (smallest id)."""
        one = min(found, key=lambda one: (one.status != "active", one.contact_id), default=None)
        return () if one is None else (one.contact_id,)

    def prepare_requests(
        self, entry: Entry, contact_ids: Sequence[int], directory: Directory
    ) -> Outgoing:
        """Its requests to each of `contact_ids`, where its address was looked up. What could
        subscribe somebody is decided here, just before it is sent (`consent`). Raises what a
        look-up raises."""
        operation = find(entry.operation or "")
        ids = [{"id": str(contact_id)} for contact_id in contact_ids] or [{}]
        return Outgoing(
            [Call(operation, {**entry.params, **contact_params}) for contact_params in ids]
        )

    def new_contact_id(self, response: Response) -> int | None:
        """The id of the contact that a request has made, where the service names it."""
        return None

    def look_for_item(
        self,
        outbox: Outbox,
        fetch: Fetch,
        account: str,
        contact_id: int,
        item_id: int,
        settled_before: float,
    ) -> Presence:
        """Look for an item; what was done before `settled_before` (unix seconds) shows. Whoever is
        idempotent is sent again instead, and needs no look."""
        raise NotImplementedError

    def read_back(self, reading: ReadBack, entries: list[Entry], how: str) -> None:
        """`all`, a `sample` or `none`, as the kind understands it; nothing where no operation shows
        it."""
