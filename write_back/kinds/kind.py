"""The base class of all kinds of push: columns, planning, requests, looking for lost ones,
verification and wording, with defaults for most kinds.

Not here: any single kind."""

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

#: The columns that name a person in any kind, and their group for `Spec.needs`.
WHO: Mapping[str, tuple[str, ...]] = {"email": ("email",), "contact_id": ("contact_id",)}
BY_WHO = ("email", "contact_id")


class Outgoing(NamedTuple):
    """The requests of an entry, in order. `left`: why there are none; `expected`: replaces that of
    the plan."""

    calls: Sequence[Call]
    left: str = ""
    expected: Expected | None = None


class Kind(str):
    """One kind of push. Its value is the name in commands, files and tables.

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
    #: What a plan says about addresses that the warehouse does not know.
    unknown_addresses: ClassVar[str] = (
        "not in the warehouse: rows are rejected if the service doesn't have their address"
    )

    @property
    def is_idempotent(self) -> bool:
        """Whether sending twice has the same effect as sending once. For other kinds, an item with
        an unknown outcome is looked for (`look_for_item`) before it is sent again."""
        return self.effect is not EffectKind.NOTES

    # ---- sending

    def choose_contacts(self, found: Sequence[Found]) -> tuple[int, ...]:
        """The contacts that get an item by address: only one, active ones first, then the oldest
        (smallest id)."""
        one = min(found, key=lambda one: (one.status != "active", one.contact_id), default=None)
        return () if one is None else (one.contact_id,)

    def prepare_requests(
        self, entry: Entry, contact_ids: Sequence[int], directory: Directory
    ) -> Outgoing:
        """The requests of the entry, for each of `contact_ids` if its address was looked up. A kind
        that could subscribe a person decides that here, just before sending (`consent`). Raises
        what a look-up raises."""
        operation = find(entry.operation or "")
        ids = [{"id": str(contact_id)} for contact_id in contact_ids] or [{}]
        return Outgoing(
            [Call(operation, {**entry.params, **contact_params}) for contact_params in ids]
        )

    def new_contact_id(self, response: Response) -> int | None:
        """The id of a contact that the request created, if the response has it."""
        return None

    def look_for_item(
        self,
        outbox: Outbox,
        fetch: Fetch,
        entry: Entry,
        contact_id: int,
        settled_before: float,
    ) -> Presence:
        """Look for an item whose response was lost. Effects before `settled_before` (unix seconds)
        show. Idempotent kinds don't need this: their items are sent again."""
        raise NotImplementedError

    def read_back(self, reading: ReadBack, entries: list[Entry], how: str) -> None:
        """Read back `all`, a `sample` or `none`; does nothing if the API doesn't return the
        effects."""
