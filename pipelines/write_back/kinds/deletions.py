"""Deletions of contacts from lists. They cannot be undone: a person agrees to their number first."""

from __future__ import annotations

from marketing_api.operations.contacts import DELETECONTACT
from pipelines.write_back.account_state import read_who
from pipelines.write_back.input.columns import Spec
from pipelines.write_back.kinds.kind import BY_WHO, LIST, WHO
from pipelines.write_back.kinds.list_removal import ListRemoval, ListRow
from pipelines.write_back.planning import Planning


class Deletions(ListRemoval):
    name = "deletions"
    columns = Spec({**WHO, "list": LIST}, (BY_WHO, ("list",)))
    is_destructive = True
    operation = DELETECONTACT
    leaves = "listid"

    def agreement(self, count: int) -> str:
        return f"Deleting cannot be undone. Type {count} to delete the contacts of {count} rows: "

    def read(self, planning: Planning, index: int, number: int) -> ListRow:
        lists = planning.known.lists.several(planning.picked.cells["list"][index])
        return ListRow(number, read_who(planning.picked.cells, index), lists, None)


DELETIONS = Deletions()
