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
    result of `_name_titles`. `accounts`: whose row each one is; empty if the input doesn't say."""

    cells: Mapping[str, list[Cell]] = field(repr=False)
    fields: Mapping[str, list[Cell]] = field(repr=False)
    warnings: tuple[str, ...] = ()
    faults: Mapping[int, str] = field(default_factory=dict, repr=False)
    renamed: tuple[tuple[str, str], ...] = ()
    called: Mapping[str, str | None] = field(default_factory=dict)
    accounts: Sequence[Cell] = field(default=(), repr=False)


def fold_name(name: str) -> str:
    """Names that differ only in case, blanks, underscores or invisible characters are equal."""
    words = as_seen(name).split()
    joined = "".join(words)
    return joined.replace("_", "").casefold()


def _fold_title(name: str) -> str:
    """For the comparison with usual spellings."""
    plain = name.translate(_FILLERS)
    return fold_name(plain)


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
    unknown: list[str] = []
    accounts: Sequence[Cell] = ()
    for title, known_name in called.items():
        if known_name is None and fold_name(title) == "account":
            accounts = rows.cells[title]
        elif known_name is None and any(rows.cells[title]):
            unknown.append(title)
    _check_columns(rows, names, found, unknown)
    cells: dict[str, list[Cell]] = {}
    field_cells: dict[str, list[Cell]] = {}
    renamed: list[tuple[str, str]] = []
    for name, title in found.items():
        is_renamed = not names.has_name(title, name)
        if is_renamed:
            renamed.append((name, title))
        if name in spec.names:
            cells[name] = rows.cells[title]
        else:
            field_name = name if is_renamed else title
            field_cells[field_name] = rows.cells[title]
    warnings = tuple(_find_stored(rows, found.values()))
    faults = _find_faults(rows, found.values())
    return Picked(cells, field_cells, warnings, faults, tuple(renamed), called, accounts)


def _name_titles(rows: Rows, options: Options, names: "_Names") -> dict[str, str | None]:
    """Titles that are not ignored → our column or the custom field; None: unknown."""
    titles = rows.columns
    ignored = {_find_title(titles, name, "--ignore") for name in options.ignore}
    mapped = dict(_map_titles(titles, options.mapping, names))
    return {
        title: mapped.get(title) or names.find_name(title)
        for title in titles
        if title not in ignored
    }


def _find_titles(called: Mapping[str, str | None]) -> dict[str, str]:
    """Our column or the custom field → its title. `called`: the result of `_name_titles`."""
    found: dict[str, str] = {}
    for title, name in called.items():
        if name is None:
            continue
        first_title = found.setdefault(name, title)
        if first_title != title:
            raise InputError(
                f"the columns {show_name(first_title)} and {show_name(title)} may both be "
                f"{show_name(name)}: leave one out with --ignore"
            )
    return found


def _find_faults(rows: Rows, titles: Iterable[str]) -> dict[int, str]:
    """Row → why a cell of these columns cannot be read."""
    found: dict[int, str] = {}
    for title in titles:
        faults = rows.cell_faults.get(title, {})
        found = {**faults, **found}
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
            spellings = SPELLINGS.get(column, ())
            for name in (*several, *spellings):
                self._usual[_fold_title(name)] = column

    def has_name(self, title: str, name: str | None = None) -> bool:
        """Whether the title is an exact name (of the column or field `name`, if given)."""
        found = self._exact.get(fold_name(title))
        return found is not None and name in (None, found)

    def find_name(self, title: str) -> str | None:
        """The column or field with this exact name, else the column with this usual spelling."""
        exact = self._exact.get(fold_name(title))
        return exact or self._usual.get(_fold_title(title))


def _map_titles(
    titles: Collection[str], mapping: Mapping[str, str], names: _Names
) -> Iterator[tuple[str, str]]:
    """Pairs of a title and the column or custom field to which --map assigns it."""
    for column, title in mapping.items():
        name = names.find_name(column) if names.has_name(column) else None
        if name is None:
            suggestion = suggest_names(column, names.all)
            raise InputError(
                f"--map {column}=…: there is no column {show_name(column)}{suggestion}; write "
                "--map OURS=THEIRS"
            )
        mapped_title = _find_title(titles, title, "--map")
        yield mapped_title, name


def _find_title(titles: Collection[str], name: str, option: str) -> str:
    """The title itself, before one that differs in case, blanks or underscores."""
    by_fold = {fold_name(title): title for title in titles}
    title = name if name in titles else by_fold.get(fold_name(name))
    if title is None:
        suggestion = suggest_names(name, titles)
        raise InputError(
            f"{option}: the input has no column {show_name(name)}{suggestion}; it has "
            f"{_list_names(titles)}"
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
        listed = " and ".join(missing)
        parts.append(f"the input has no {_columns(missing)} {listed}")
    has_several_titles = len(unknown) > 1 and not rows.faults
    is_header = found or has_several_titles
    has_address = "@" in "".join(unknown)
    if not is_header or has_address:
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
    listed: list[str] = []
    for name in unknown[:10]:
        suggestion = suggest_names(name, names.all)
        listed.append(f"{show_name(name)}{suggestion}")
    titles = [as_seen(name) for name in unknown]
    option = shlex.join(["--map", f"OURS={titles[0]}"])
    ignored = shlex.join(["--ignore", *titles])
    return [
        f"unknown {_columns(unknown)} {', '.join(listed)}",
        f"known are {_list_names(names.all)}",
        f"say which it is with {option}, or leave unknown columns out with {ignored} (in the "
        "launchpad: map, ignore)",
    ]


def _columns(names: Collection[str]) -> str:
    return "column" if len(names) == 1 else "columns"


def suggest_names(name: str, known: Iterable[str]) -> str:
    """` (did you mean NAME?)`, or nothing if no known name is similar."""
    by_fold = {fold_name(title[:_LONGEST_NAME]): title for title in reversed(list(known))}
    folded = fold_name(name[:_LONGEST_NAME])
    nearest = difflib.get_close_matches(folded, by_fold, n=1, cutoff=0.6)
    if not nearest:
        return ""
    suggestion = by_fold[nearest[0]]
    return f" (did you mean {show_name(suggestion)}?)"


def _list_names(names: Iterable[str]) -> str:
    many = list(names)
    shown = [show_name(name)[1:-1] for name in many[:20]]
    listed = ", ".join(shown)
    left_count = len(many) - len(shown)
    return f"{listed} and {left_count} more" if left_count else listed
