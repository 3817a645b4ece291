"""Finding the columns that a kind of push declares in an input whatever their spelling.

Belongs here: names of columns. Not here: their values (`values`), which custom fields there are (`known`).
"""

import difflib
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from pipelines.write_back.input.rows import Cell, InputError, Rows, shown
from pipelines.write_back.item import Options


@dataclass(frozen=True, slots=True)
class Spec:
    """`names`: our column → how an input may call it. `needs`: of each group at least one column has to be there."""

    names: Mapping[str, tuple[str, ...]]
    needs: tuple[tuple[str, ...], ...]
    takes_fields: bool = False


#: Letters of a name that are compared with others to see whether it was meant: that takes their product.
_LONGEST_NAME = 100


@dataclass(frozen=True)
class Picked:
    """The input's cells by our column; `fields`: the title of each column that a custom field is called by, with its cells."""

    cells: Mapping[str, list[Cell]] = field(repr=False)
    fields: Mapping[str, list[Cell]] = field(repr=False)
    warnings: tuple[str, ...] = ()


def fold(name: str) -> str:
    """Case, blanks and underscores do not tell names apart."""
    return "".join(name.split()).replace("_", "").casefold()


def pick(rows: Rows, spec: Spec, options: Options, fields: Collection[str] = ()) -> Picked:
    """The columns that a kind takes; `fields` are the custom fields' ids and labels. InputError when columns are missing,
    unknown or there twice: one sentence about all of them.
    """
    titles = {fold(title): title for title in rows.columns}
    mapped = _mapped(titles, options.mapping, spec, fields)
    ignored = {_existing(titles, name, "--ignore") for name in options.ignore}
    ours = {fold(name): column for column, names in spec.names.items() for name in names}
    field_names = {fold(name) for name in fields} if spec.takes_fields else set()
    found: dict[str, str] = {}
    own: dict[str, str] = {}
    unknown: list[str] = []
    warnings: list[str] = []
    for title in sorted((each for each in rows.columns if each not in ignored), key=lambda each: each not in mapped):
        name = fold(mapped.get(title, title))
        place, key = (found, ours[name]) if name in ours else (own, name) if name in field_names else (None, "")
        if place is None:
            unknown.append(title)
        elif key in place and place[key] in mapped and title not in mapped:
            warnings.append(f"column {shown(title)} is left out, since --map takes {shown(place[key])} in its place")
        elif key in place:
            raise InputError(f"the columns {shown(place[key])} and {shown(title)} mean the same: remove one, or leave it out with --ignore")
        else:
            place[key] = title
    _check(spec, found, unknown, fields)
    titled = {mapped.get(title, title): rows.cells[title] for title in own.values()}
    return Picked({column: rows.cells[title] for column, title in found.items()}, titled, tuple(warnings))


def _mapped(titles: Mapping[str, str], mapping: Mapping[str, str], spec: Spec, fields: Collection[str]) -> dict[str, str]:
    """The input's title → the name it goes by."""
    names = [name for many in spec.names.values() for name in many] + list(fields if spec.takes_fields else ())
    known = {fold(name) for name in names}
    for name in mapping:
        if fold(name) not in known:
            raise InputError(f"--map {name}=…: there is no column {shown(name)}{_near(name, names)}; it is --map ours=theirs")
    return {_existing(titles, theirs, "--map"): name for name, theirs in mapping.items()}


def _existing(titles: Mapping[str, str], name: str, option: str) -> str:
    title = name if name in titles.values() else titles.get(fold(name))
    if title is None:
        raise InputError(f"{option}: the input has no column {shown(name)}{_near(name, titles.values())}; it has {_list(titles.values())}")
    return title


def _check(spec: Spec, found: Collection[str], unknown: list[str], fields: Collection[str]) -> None:
    missing = [group for group in spec.needs if not any(column in found for column in group)]
    if not missing and not unknown:
        return
    if any("@" in title for title in unknown):
        raise InputError("the first row looks like data: the input needs a first row with the columns' names, like email")
    names = [spec.names[column][0] for column in spec.names] + list(fields if spec.takes_fields else ())
    lacks = " and ".join(" or ".join(spec.names[column][0] for column in group) for group in missing)
    parts = [f"the input has no column {lacks}"] if missing else []
    if unknown:
        verb = "is a column" if len(unknown) == 1 else "are columns"
        parts.append(", ".join(f"{shown(title)}{_near(title, names)}" for title in unknown[:10]) + f" {verb} that nothing is known about")
    known = f"; known are {_list(dict.fromkeys(names))}" if unknown else ""
    advice = "name a column with --map ours=theirs" + (", leave one out with --ignore NAME" if unknown else "")
    raise InputError(f"{'; '.join(parts)}{known}; {advice}")


def _near(name: str, known: Iterable[str]) -> str:
    by_fold = {fold(each[:_LONGEST_NAME]): each for each in reversed(list(known))}
    near = difflib.get_close_matches(fold(name[:_LONGEST_NAME]), by_fold, n=1, cutoff=0.6)
    return f" (did you mean {shown(by_fold[near[0]])}?)" if near else ""


def _list(names: Iterable[str]) -> str:
    many = list(names)
    return ", ".join(shown(name)[1:-1] for name in many[:20]) + (f" and {len(many) - 20} more" if len(many) > 20 else "")
