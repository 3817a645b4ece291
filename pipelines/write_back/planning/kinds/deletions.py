"""Planning deletions of contacts from lists."""

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
    """Who is on the lists. Raises InputError for columns that cannot be used."""
    picked = pick(rows, Kind.DELETIONS, options)
    draft = Draft(known.account, Kind.DELETIONS, rows)
    for warning in picked.warnings:
        draft.warn(warning)
    read: list[PlaceRow] = []
    for index in draft.indexes():
        try:
            lists = known.lists.several(picked.cells["list"][index])
            read.append(PlaceRow(rows.numbers[index], read_who(picked.cells, index), lists, None))
        except BadValue as problem:
            draft.reject(rows.numbers[index], str(problem))
    if read:
        Places(draft, known, last, read).run()
    return draft.plan()
