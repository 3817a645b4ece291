"""Moves of contacts from one list to another."""

from __future__ import annotations

from marketing_api.operations.contacts import MOVECONTACT
from pipelines.write_back.account_state import read_who
from pipelines.write_back.input.columns import Spec
from pipelines.write_back.input.values import BadValue
from pipelines.write_back.kinds.kind import BY_WHO, WHO
from pipelines.write_back.kinds.list_removal import ListRemoval, ListRow
from pipelines.write_back.planning import Planning


class Moves(ListRemoval):
    name = "moves"
    columns = Spec({**WHO, "from": ("from", "source_id"), "to": ("to", "list_id")}, (BY_WHO, ("from",), ("to",)))
    operation = MOVECONTACT
    leaves = "sourceid"

    def read(self, planning: Planning, index: int, number: int) -> ListRow:
        cells, lists = planning.picked.cells, planning.known.lists
        who = read_who(cells, index)
        source = lists.one(cells["from"][index], "the source list")
        target = lists.one(cells["to"][index], "the target list")
        if source == target:
            raise BadValue("the source list and the target list are the same")
        return ListRow(number, who, (source,), target)


MOVES = Moves()
