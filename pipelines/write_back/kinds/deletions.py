"""Planning deletions of contacts from lists."""

from __future__ import annotations

from pipelines.write_back.columns import pick
from pipelines.write_back.draft import Draft, Last
from pipelines.write_back.grid import Rows
from pipelines.write_back.item import Kind, Plan
from pipelines.write_back.kinds.people import read_who
from pipelines.write_back.kinds.places import PlaceRow, Places
from pipelines.write_back.known import Known
from pipelines.write_back.options import Options
from pipelines.write_back.values import BadValue


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
