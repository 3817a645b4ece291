"""Finding the columns that a kind of push declares in an input whatever their spelling.

What `--map` and `--ignore` say goes first, then exact names, then usual spellings (`spellings.toml`). The
last are guesses, which follow from the header and the account's fields alone: the same input is always
understood alike. Belongs here: names of columns. Not here: their values (`values`), which custom fields there
are (`account_state`)."""

import difflib
import shlex
import tomllib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from home.formatting import count_of
from write_back.input.rows import Cell, InputError, Rows, Stored, as_seen, show_name, text_of
from write_back.item import Options


@dataclass(frozen=True, slots=True)
class Spec:
    """`names`: our column → how an input may call it. `needs`: of each group at least one column has to be
    there."""

    names: Mapping[str, tuple[str, ...]]
    needs: tuple[tuple[str, ...], ...]
    takes_fields: bool = False


_USUAL: Mapping[str, Any] = tomllib.loads(
    Path(__file__).with_name("spellings.toml").read_text(encoding="utf-8")
)
SPELLINGS: Mapping[str, Sequence[str]] = _USUAL["columns"]
FIELD_FAMILIES: Sequence[Sequence[str]] = _USUAL["field_families"]
#: What people put between and around words: `e-mail`, `Tag(s)`, `Phone:`. Other signs may tell names apart,
#: like `C` and `C#`.
_FILLERS = str.maketrans("", "", "-‐‑–_.:*()")
#: Bare spelling → our columns and the custom fields that it may mean; one that may mean two is no guess.
_Meanings = Mapping[str, Collection[str]]

#: Letters of a name that are compared with others to see whether it was meant: that takes their product.
_LONGEST_NAME = 100


@dataclass(frozen=True)
class Picked:
    """The input's cells by our column; `fields`: those of custom fields, by the title or what it was mapped
    to or guessed to mean. `faults`: row number → why a cell of these cannot be read. `renamed`: our column or
    the custom field, and that title."""

    cells: Mapping[str, list[Cell]] = field(repr=False)
    fields: Mapping[str, list[Cell]] = field(repr=False)
    warnings: tuple[str, ...] = ()
    faults: Mapping[int, str] = field(default_factory=dict, repr=False)
    renamed: tuple[tuple[str, str], ...] = ()


def fold_name(name: str) -> str:
    """Case, blanks, underscores and what is not seen do not tell names apart."""
    return "".join(as_seen(name).split()).replace("_", "").casefold()


def _fold_title(name: str) -> str:
    """As usual spellings are compared."""
    return fold_name(name.translate(_FILLERS))


_WHO = frozenset(_fold_title(each) for name in ("email", "contact_id") for each in (name, *SPELLINGS[name]))


def names_somebody(cells: Sequence[Cell]) -> bool:
    """Whether the row can be a header, by its words: one names addresses or contacts, and none is one."""
    words = [text for cell in cells if (text := text_of(cell))]
    return not any("@" in word for word in words) and not _WHO.isdisjoint(map(_fold_title, words))


def has_needed(header: Sequence[Cell], spec: Spec, mapping: Mapping[str, str]) -> bool:
    """Whether the row can be a header with all columns that the spec needs, by its words and --map."""
    ours = {fold_name(theirs): name for name, theirs in mapping.items()}
    words = [text for cell in header if (text := text_of(cell))]
    meanings = _list_meanings(spec, ())
    found = {
        name for word in words for name in meanings.get(_fold_title(ours.get(fold_name(word), word)), ())
    }
    return not any(found.isdisjoint(group) for group in spec.needs)


def names_contacts(title: str, mapping: Mapping[str, str]) -> bool:
    """Whether the column holds contacts' ids, by its title or by what --map says."""
    ours = {fold_name(theirs): name for name, theirs in mapping.items()}.get(fold_name(title), title)
    return _fold_title(ours) in {_fold_title(name) for name in ("contact_id", *SPELLINGS["contact_id"])}


def pick_columns(rows: Rows, spec: Spec, options: Options, fields: Collection[str] = ()) -> Picked:
    """The columns that a kind takes; `fields` are the custom fields' ids and labels. InputError when columns
    are missing, unknown, there twice or may be two things: one sentence about all of them."""
    names = _Names(spec, fields)
    left, mapped = _mapped_of(rows, options, names)
    # what a person says goes before names, and these go before guesses
    called = mapped | names.match_titles(_without(left, mapped))
    found, warnings = _one_for_each(called, mapped)
    _check_columns(names, found, _without(left, called))
    faults = _find_faults(rows, found.values(), clears=options.clear_empty)
    warnings += _find_unseen(rows, found.values())
    warnings += _find_stored(rows, found.values())
    meant = {title: name for name, title in found.items() if title in mapped or not names.has_name(title)}
    return Picked(
        {name: rows.cells[title] for name, title in found.items() if name in spec.names},
        {
            meant.get(title, title): rows.cells[title]
            for name, title in found.items()
            if name not in spec.names
        },
        tuple(warnings),
        faults,
        tuple((meant[title], title) for title in rows.columns if title in meant),
    )


def _without(titles: Iterable[str], known: Collection[str]) -> list[str]:
    return [title for title in titles if title not in known]


def _mapped_of(rows: Rows, options: Options, names: "_Names") -> tuple[list[str], dict[str, str]]:
    """The titles that are not ignored, and what --map says of some."""
    titles = {fold_name(title): title for title in rows.columns}
    ignored = {_find_title(titles, name, "--ignore") for name in options.ignore}
    left = _without(rows.columns, ignored)
    return left, {title: name for title, name in _map_titles(titles, options.mapping, names) if title in left}


def without_repeated(rows: Rows, ignored: Iterable[str]) -> Rows:
    """Rows that are alike in all columns but those ignored, as joins make them, as one, with a note."""
    left_out = set(map(fold_name, ignored))
    columns = [column for title, column in rows.cells.items() if fold_name(title) not in left_out]
    faulty = {number for faults in rows.cell_faults.values() for number in faults}
    first: dict[object, int] = {}
    for place, cells in enumerate(zip(*columns, strict=True)):
        number = rows.numbers[place]
        first.setdefault(number if number in faulty else cells, place)
    repeated = len(rows) - len(first)
    if not repeated or not columns:
        return rows
    note = f"{count_of(repeated, 'row')} of the query left out, the same as another one"
    return replace(rows.take_rows(first.values()), warnings=(*rows.warnings, note))


def _find_faults(rows: Rows, titles: Iterable[str], *, clears: bool) -> dict[int, str]:
    """Row → why a cell of these columns cannot be read. `clears`: nothing empties a field because a formula
    failed."""
    found: dict[int, str] = {}
    for title in titles:
        for number in rows.failed.get(title, ()) if clears else ():
            found.setdefault(number, f"column {show_name(title)}: a cell shows an error like #N/A")
        for number, reason in rows.cell_faults.get(title, {}).items():
            found.setdefault(number, reason)
    return found


def _find_unseen(rows: Rows, titles: Collection[str]) -> list[str]:
    hidden = [show_name(title) for title in rows.hidden if title in titles]
    return [f"hidden in the sheet, and used: column {', '.join(hidden)}"] if hidden else []


def _find_stored(rows: Rows, titles: Collection[str]) -> Iterator[str]:
    for title in titles:
        if count := sum(isinstance(cell, Stored) for cell in rows.cells[title]):
            yield (
                f"column {show_name(title)}: the stored values of {count_of(count, 'cell')} are used, "
                "because the number format is not supported; Excel may display something else"
            )


class _Names:
    """What the columns of an input may be called. `fields`: ids and labels of custom ones; `exact`: folded
    spelling → our column or the custom field."""

    def __init__(self, spec: Spec, fields: Collection[str]) -> None:
        self.spec, own = spec, list(fields) if spec.takes_fields else []
        self.all = [several[0] for several in spec.names.values()] + own
        self.exact = {fold_name(name): name for name in reversed(own)}
        self.exact |= {fold_name(name): column for column, several in spec.names.items() for name in several}
        self.meanings = _list_meanings(spec, [name for name in self.exact.values() if name not in spec.names])

    def has_name(self, title: str) -> bool:
        return fold_name(title) in self.exact

    def match_titles(self, titles: Iterable[str]) -> dict[str, str]:
        """Title → the column or field of its name, then those of which it means one. InputError for one that
        may mean several."""
        titles = list(titles)
        named = {title: self.exact[fold_name(title)] for title in titles if self.has_name(title)}
        meant = {title: self._guess_name(title) for title in titles if title not in named}
        return named | {title: name for title, name in meant.items() if name}

    def _guess_name(self, title: str) -> str:
        *others, last = self.meanings.get(_fold_title(title), ("",))
        if not others:
            return last
        means = f"{', '.join(map(show_name, others))} or {show_name(last)}"
        raise InputError(
            f"the column {show_name(title)} may be {means}: say which it is, like "
            f"{_map_option(others[0], title)}"
        )


def _one_for_each(called: Mapping[str, str], mapped: Collection[str]) -> tuple[dict[str, str], list[str]]:
    """Our column or the custom field → the title that it is, and what is left out for it, in words.
    InputError when two titles are the same thing, unless a person has said which of them it is."""
    found: dict[str, str] = {}
    warnings: list[str] = []
    for title, name in called.items():
        first = found.setdefault(name, title)
        if first == title:
            continue
        if first not in mapped or title in mapped:
            raise InputError(
                f"the columns {show_name(first)} and {show_name(title)} may both be {show_name(name)}: "
                f"say which it is, like {_map_option(name, first)}, or leave one out with --ignore"
            )
        warnings.append(
            f"column {show_name(title)} is left out, since --map takes {show_name(first)} in its place"
        )
    return found, warnings


def _list_meanings(spec: Spec, fields: Iterable[str]) -> _Meanings:
    found: dict[str, dict[str, None]] = {}
    for column, names in spec.names.items():
        for name in (*names, *SPELLINGS.get(column, ())):
            found.setdefault(_fold_title(name), {})[column] = None
    families = {_fold_title(name): family for family in FIELD_FAMILIES for name in family}
    for label in fields:
        for name in families.get(_fold_title(label), (label,)):
            found.setdefault(_fold_title(name), {})[label] = None
    return found


def _map_option(ours: str, theirs: str) -> str:
    return "--map " + shlex.quote(f"{show_name(ours)[1:-1]}={show_name(theirs)[1:-1]}")


def _map_titles(
    titles: Mapping[str, str], mapping: Mapping[str, str], names: _Names
) -> Iterator[tuple[str, str]]:
    """The input's title → our column or the custom field that --map says it is."""
    for name, theirs in mapping.items():
        if not names.has_name(name):
            raise InputError(
                f"--map {name}=…: there is no column {show_name(name)}{suggest_names(name, names.all)}; it "
                "is --map ours=theirs"
            )
        yield _find_title(titles, theirs, "--map"), names.exact[fold_name(name)]


def _find_title(titles: Mapping[str, str], name: str, option: str) -> str:
    title = name if name in titles.values() else titles.get(fold_name(name))
    if title is None:
        raise InputError(
            f"{option}: the input has no column {show_name(name)}{suggest_names(name, titles.values())}; it "
            f"has {_list_names(titles.values())}"
        )
    return title


def _check_columns(names: _Names, found: Mapping[str, str], unknown: list[str]) -> None:
    """InputError when a column is missing, or `unknown`."""
    missing = [group for group in names.spec.needs if found.keys().isdisjoint(group)]
    if not missing and not unknown:
        return
    _check_header(unknown, len(found) + len(unknown))
    parts, known = list(_describe_missing(names, found, missing)), ""
    advice = [f"name a column with {_map_example(names, found, missing, unknown)}"]
    if missing:
        advice.append("or add it to the input")
    if unknown:
        columns = "column" if len(unknown) == 1 else "columns"
        titles = ", ".join(f"{show_name(title)}{suggest_names(title, names.all)}" for title in unknown[:10])
        parts.append(f"unknown {columns} {titles}")
        known = f"; known are {_list_names(dict.fromkeys(names.all))}"
        advice.append("leave one out with --ignore NAME")
    raise InputError(f"{'; '.join(parts)}{known}; {', '.join(advice)}")


def _map_example(
    names: _Names, found: Mapping[str, str], missing: list[tuple[str, ...]], unknown: list[str]
) -> str:
    """The --map for the first unknown column: what it is called nearly, else what is missing, or free."""
    if not unknown:
        return "--map ours=theirs"
    free = [name for name in names.all if names.exact[fold_name(name)] not in found]
    likely = [*_find_nearest(unknown[0], free), *(names.spec.names[group[0]][0] for group in missing), *free]
    return _map_option(next(iter(likely), "OURS"), unknown[0])


def _check_header(unknown: list[str], count: int) -> None:
    """InputError for a first row of `count` cells that is no header, or one in a single cell."""
    if any("@" in title for title in unknown):
        raise InputError(
            "the first row looks like data: the input needs a first row with the columns' names, like email"
        )
    if count == 1 and any(sign in title for title in unknown for sign in ",;|\t"):
        raise InputError(
            f"the header is one cell, {show_name(unknown[0])}: put each column into a cell of its own, "
            "without quotation marks around whole rows, here and in the rows below"
        )


def _describe_missing(
    names: _Names, found: Mapping[str, str], missing: list[tuple[str, ...]]
) -> Iterator[str]:
    """And titles that are the exact names of custom fields here, and usually what is missing."""
    if missing:
        firsts = (" or ".join(names.spec.names[column][0] for column in group) for group in missing)
        columns = "column" if len(missing) == 1 else "columns"
        yield f"the input has no {columns} {' and '.join(firsts)}"
    for column in (column for group in missing for column in group):
        for name, title in found.items():
            if name not in names.spec.names and column in names.meanings.get(_fold_title(title), ()):
                option = _map_option(column, title)
                yield f"{show_name(title)} is a custom field here: if it is meant, write {option}"


def suggest_names(name: str, known: Iterable[str]) -> str:
    """Which of them may be meant, as an end of what is said of it."""
    return "".join(f" (did you mean {show_name(found)}?)" for found in _find_nearest(name, known))


def _find_nearest(name: str, known: Iterable[str]) -> list[str]:
    """The one of them that is called nearly so, if any is."""
    by_fold = {fold_name(title[:_LONGEST_NAME]): title for title in reversed(list(known))}
    found = difflib.get_close_matches(fold_name(name[:_LONGEST_NAME]), by_fold, n=1, cutoff=0.6)
    return [by_fold[title] for title in found]


def _list_names(names: Iterable[str]) -> str:
    many = list(names)
    return ", ".join(show_name(name)[1:-1] for name in many[:20]) + (
        f" and {len(many) - 20} more" if len(many) > 20 else ""
    )
