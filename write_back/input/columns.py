"""Finding a push's columns in an input, in any usual spelling.

`--map` and `--ignore` go first, then exact names, then usual spellings (`spellings.toml`). Belongs
here: names of columns. Not here: their values (`values`), which custom fields there are
(`account_state`)."""

import difflib
import shlex
import tomllib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from home.formatting import count_of
from write_back.input.rows import Cell, InputError, Rows, Stored, as_seen, show_name
from write_back.item import Options


@dataclass(frozen=True, slots=True)
class Spec:
    """The columns of a kind. `names`: our column → its exact names in an input; `needs`: groups of
    columns; an input must have at least one column of each group."""

    names: Mapping[str, tuple[str, ...]]
    needs: tuple[tuple[str, ...], ...]
    takes_fields: bool = False


#: Our column → its usual spellings, without its own names.
SPELLINGS: Mapping[str, Sequence[str]] = tomllib.loads(
    Path(__file__).with_name("spellings.toml").read_text(encoding="utf-8")
)
#: Signs between and around words: `e-mail`, `Tag(s)`, `Phone:`. Other signs may distinguish names,
#: like `C` and `C#`.
_FILLERS = str.maketrans("", "", "-‐‑–_.:*()")
#: Letters of a name that are compared to suggest another name: the time grows with their product.
_LONGEST_NAME = 100


@dataclass(frozen=True)
class Picked:
    """The input's cells by our column; `fields`: those of custom fields, by the title or what it
    was mapped to. `faults`: row number → why a cell of these cannot be read. `renamed`: our column
    or the custom field, and the title that was mapped to it or guessed to mean it. `called`: the
    result of `_name_titles`."""

    cells: Mapping[str, list[Cell]] = field(repr=False)
    fields: Mapping[str, list[Cell]] = field(repr=False)
    warnings: tuple[str, ...] = ()
    faults: Mapping[int, str] = field(default_factory=dict, repr=False)
    renamed: tuple[tuple[str, str], ...] = ()
    called: Mapping[str, str | None] = field(default_factory=dict)


def fold_name(name: str) -> str:
    """Names that differ only in case, blanks, underscores or invisible characters are equal."""
    return "".join(as_seen(name).split()).replace("_", "").casefold()


def _fold_title(name: str) -> str:
    """For the comparison with usual spellings."""
    return fold_name(name.translate(_FILLERS))


def names_contacts(title: str, mapping: Mapping[str, str]) -> bool:
    """Whether the column has contact ids, by its title or by --map."""
    names = {fold_name(mapped): name for name, mapped in mapping.items()}
    name = names.get(fold_name(title), title)
    id_names = map(_fold_title, ("contact_id", *SPELLINGS["contact_id"]))
    return _fold_title(name) in id_names


def pick_columns(rows: Rows, spec: Spec, options: Options, fields: Collection[str] = ()) -> Picked:
    """The columns that a kind takes; `fields`: ids and labels of custom fields. Raises InputError,
    with one sentence about all missing, unknown or repeated columns."""
    names = _Names(spec, fields)
    called = _name_titles(rows, options, names)
    found = _find_titles(called)
    unknown = [title for title, name in called.items() if name is None and any(rows.cells[title])]
    _check_columns(rows, names, found, unknown)
    meant = {title: name for name, title in found.items() if not names.has_name(title, name)}
    cells = {name: rows.cells[title] for name, title in found.items()}
    return Picked(
        {name: column for name, column in cells.items() if name in spec.names},
        {
            meant.get(found[name], found[name]): cells[name]
            for name in cells
            if name not in spec.names
        },
        tuple(_find_stored(rows, found.values())),
        _find_faults(rows, found.values()),
        tuple((name, title) for title, name in meant.items()),
        called,
    )


def _name_titles(rows: Rows, options: Options, names: "_Names") -> dict[str, str | None]:
    """Titles that are not ignored → our column or the custom field; None: unknown."""
    titles = {fold_name(title): title for title in rows.columns}
    ignored = {_find_title(titles, name, "--ignore") for name in options.ignore}
    mapped = dict(_map_titles(titles, options.mapping, names))
    return {
        title: mapped.get(title) or names.find_name(title)
        for title in rows.columns
        if title not in ignored
    }


def _find_titles(called: Mapping[str, str | None]) -> dict[str, str]:
    """Our column or the custom field → its title. `called`: the result of `_name_titles`."""
    found: dict[str, str] = {}
    for title, name in called.items():
        if name is not None and found.setdefault(name, title) != title:
            raise InputError(
                f"the columns {show_name(found[name])} and {show_name(title)} may both be "
                f"{show_name(name)}: leave one out with --ignore"
            )
    return found


def _find_faults(rows: Rows, titles: Iterable[str]) -> dict[int, str]:
    """Row → why a cell of these columns cannot be read."""
    found: dict[int, str] = {}
    for title in titles:
        found = {**rows.cell_faults.get(title, {}), **found}
    return found


def _find_stored(rows: Rows, titles: Collection[str]) -> Iterator[str]:
    for title in titles:
        count = sum(isinstance(cell, Stored) for cell in rows.cells[title])
        if count:
            yield (
                f"column {show_name(title)}: the stored values of {count_of(count, 'cell')} are "
                "used, because the number format is not supported; Excel may display something "
                "else"
            )


class _Names:
    """The names that columns of an input may have. `fields`: ids and labels of custom fields."""

    def __init__(self, spec: Spec, fields: Collection[str]) -> None:
        self.spec = spec
        own = list(fields) if spec.takes_fields else []
        self.all = [several[0] for several in spec.names.values()]
        self.all += [name for name in own if not name.isdecimal()]
        self._exact = {fold_name(name): name for name in reversed(own)}
        self._usual: dict[str, str] = {}
        for column, several in spec.names.items():
            for name in several:
                self._exact[fold_name(name)] = column
            for name in (*several, *SPELLINGS.get(column, ())):
                self._usual[_fold_title(name)] = column

    def has_name(self, title: str, name: str | None = None) -> bool:
        """Whether the title is an exact name (of the column or field `name`, if given)."""
        found = self._exact.get(fold_name(title))
        return found is not None and name in (None, found)

    def find_name(self, title: str) -> str | None:
        """The column or field with this exact name, else the column with this usual spelling."""
        return self._exact.get(fold_name(title)) or self._usual.get(_fold_title(title))


def _map_titles(
    titles: Mapping[str, str], mapping: Mapping[str, str], names: _Names
) -> Iterator[tuple[str, str]]:
    """Pairs of a title and the column or custom field to which --map assigns it."""
    for column, title in mapping.items():
        name = names.find_name(column) if names.has_name(column) else None
        if name is None:
            suggestion = suggest_names(column, names.all)
            raise InputError(
                f"--map {column}=…: there is no column {show_name(column)}{suggestion}; it is "
                "--map ours=theirs"
            )
        yield _find_title(titles, title, "--map"), name


def _find_title(titles: Mapping[str, str], name: str, option: str) -> str:
    known = titles.values()
    title = name if name in known else titles.get(fold_name(name))
    if title is None:
        raise InputError(
            f"{option}: the input has no column {show_name(name)}{suggest_names(name, known)}; it "
            f"has {_list_names(known)}"
        )
    return title


def _check_columns(rows: Rows, names: _Names, found: Mapping[str, str], unknown: list[str]) -> None:
    """Raises InputError when a column is missing or `unknown`."""
    missing = [
        " or ".join(names.spec.names[column][0] for column in group)
        for group in names.spec.needs
        if found.keys().isdisjoint(group)
    ]
    parts = []
    if missing:
        parts.append(f"the input has no {_columns(missing)} {' and '.join(missing)}")
    is_header = found or (unknown[1:] and not rows.faults)
    if not is_header or "@" in "".join(unknown):
        title = show_name(rows.columns[0])
        parts.append(f"its first row, {title}, is data or a title: it has to name the columns")
        parts += rows.warnings
    elif unknown:
        parts += _describe_unknown(names, unknown)
    elif missing:
        parts.append("add what is missing, or name a column with --map ours=theirs")
    if parts:
        raise InputError("; ".join(parts))


def _describe_unknown(names: _Names, unknown: list[str]) -> list[str]:
    """The unknown columns, the known ones, and the options that help."""
    listed = [f"{show_name(name)}{suggest_names(name, names.all)}" for name in unknown[:10]]
    option = shlex.join(["--map", f"OURS={as_seen(unknown[0])}"])
    ignored = shlex.join(["--ignore", *map(as_seen, unknown)])
    return [
        f"unknown {_columns(unknown)} {', '.join(listed)}",
        f"known are {_list_names(names.all)}",
        f"say which it is with {option}, or leave unknown columns out with {ignored}",
    ]


def _columns(names: Collection[str]) -> str:
    return "column" if len(names) == 1 else "columns"


def suggest_names(name: str, known: Iterable[str]) -> str:
    """` (did you mean NAME?)`, or nothing if no known name is similar."""
    by_fold = {fold_name(title[:_LONGEST_NAME]): title for title in reversed(list(known))}
    folded = fold_name(name[:_LONGEST_NAME])
    nearest = difflib.get_close_matches(folded, by_fold, n=1, cutoff=0.6)
    return f" (did you mean {show_name(by_fold[nearest[0]])}?)" if nearest else ""


def _list_names(names: Iterable[str]) -> str:
    many = list(names)
    listed = ", ".join(show_name(name)[1:-1] for name in many[:20])
    return f"{listed} and {len(many) - 20} more" if len(many) > 20 else listed
