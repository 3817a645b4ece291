"""Planning moves of contacts from one list to another."""

from __future__ import annotations

from pipelines.write_back.input.columns import pick
from pipelines.write_back.input.rows import Rows
from pipelines.write_back.input.values import BadValue
from pipelines.write_back.item import Kind, Plan
from pipelines.write_back.planning.draft import Draft, Last
from pipelines.write_back.planning.kinds.people import read_who
from pipelines.write_back.planning.kinds.places import PlaceRow, Places
from pipelines.write_back.planning.known import Known
from pipelines.write_back.planning.options import Options


def plan(rows: Rows, known: Known, last: Last, options: Options) -> Plan:
    """Who is on the source and not on the target yet. Raises InputError for columns that cannot be used."""
    picked = pick(rows, Kind.MOVES, options)
    draft = Draft(known.account, Kind.MOVES, rows)
    for warning in picked.warnings:
        draft.warn(warning)
    read: list[PlaceRow] = []
    for index in draft.indexes():
        try:
            who = read_who(picked.cells, index)
            source = known.lists.one(picked.cells["from"][index], "the source list")
            target = known.lists.one(picked.cells["to"][index], "the target list")
            if source == target:
                raise BadValue("the source list and the target list are the same")
            read.append(PlaceRow(rows.numbers[index], who, (source,), target))
        except BadValue as problem:
            draft.reject(rows.numbers[index], str(problem))
    if read:
        Places(draft, known, last, read).run()
    return draft.plan()
