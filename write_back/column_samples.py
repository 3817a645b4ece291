"""What a plan shows of each column of the input: what it was taken for, and a few of its values
before and after they are read.

Not here: finding the columns (`input.columns`), what a value means (`input.values`)."""

from collections.abc import Callable, Mapping, Sequence
from itertools import islice

from home.output import InputColumn, ValueSample
from write_back.account_state import Known
from write_back.input import values
from write_back.input.columns import Picked
from write_back.input.rows import Cell, Rows, cell_text, text_of
from write_back.input.values import BadValue

_MAX_SAMPLES = 3
#: Filled cells of a column that are looked at.
_MAX_READ = 1_000

ReadCell = Callable[[Cell], object]


def describe_columns(rows: Rows, picked: Picked, known: Known) -> list[InputColumn]:
    """The columns of the input in their order."""
    readers = list_readers(known)
    described = []
    for title, column in rows.cells.items():
        name = picked.called.get(title)
        samples: list[ValueSample] = []
        if name is not None:
            read_cell = readers.get(name, text_of)
            samples = _sample_values(column, read_cell)
        described.append(InputColumn(title, name, samples))
    return described


def list_readers(known: Known) -> Mapping[str, ReadCell]:
    """Our column → what reads a cell of it. Custom fields and descriptions are sent as text."""

    def read_lists(cell: Cell) -> str:
        list_ids = known.lists.find_lists(cell)
        names = [known.lists.names[list_id] for list_id in list_ids]
        return ", ".join(names)

    return {
        "email": values.read_address,
        "contact_id": lambda cell: values.read_id(cell, "the contact id"),
        "list": read_lists,
        "status": lambda cell: values.read_status(text_of(cell) or ""),
        "ip_address": lambda cell: values.ip_address(text_of(cell) or ""),
        "tag": lambda cell: ", ".join(values.read_tags(text_of(cell) or "")),
        "action": values.read_action,
        "datetime": lambda cell: values.parse_moment(cell, known.zone).wall,
    }


def _sample_values(column: Sequence[Cell], read_cell: ReadCell) -> list[ValueSample]:
    """Different values: values that change come first, invalid ones last."""
    filled = (cell for cell in column if cell)
    cells: dict[str, Cell] = {}
    for filled_cell in islice(filled, _MAX_READ):
        text = cell_text(filled_cell) or ""
        cells[text] = filled_cell
    samples: list[ValueSample] = []
    for before, cell in cells.items():
        after = _read_text(cell, read_cell)
        samples.append(ValueSample(before, after))
    samples.sort(key=lambda value: (value.after is None, value.after == value.before))
    return samples[:_MAX_SAMPLES]


def _read_text(cell: Cell, read_cell: ReadCell) -> str | None:
    try:
        value = read_cell(cell)
    except BadValue:
        return None
    return str(value)
