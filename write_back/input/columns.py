"""Finding the columns that a kind of push declares in an input whatever their spelling.

What `--map` and `--ignore` say goes first, then exact names, then usual spellings (`spellings.toml`). The
last are guesses, which follow from the header and the account's fields alone: the same input is always
understood alike. Belongs here: names of columns. Not here: their values (`values`), which custom fields there
are (`account_state`)."""

import difflib
import shlex
import tomllib
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from write_back.input.rows import Cell, InputError, Rows, shown
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
    to or guessed to mean. `renamed`: our column or the custom field, and that title."""

    cells: Mapping[str, list[Cell]] = field(repr=False)
    fields: Mapping[str, list[Cell]] = field(repr=False)
    warnings: tuple[str, ...] = ()
    renamed: tuple[tuple[str, str], ...] = ()


def fold(name: str) -> str:
    """Case, blanks and underscores do not tell names apart."""
    return "".join(name.split()).replace("_", "").casefold()


def _bare(name: str) -> str:
    """As usual spellings are compared."""
    return fold(name.translate(_FILLERS))


def names_contacts(title: str, mapping: Mapping[str, str]) -> bool:
    """Whether the column holds contacts' ids, by its title or by what --map says."""
    ours = {fold(theirs): name for name, theirs in mapping.items()}.get(fold(title), title)
    return _bare(ours) in {_bare(name) for name in ("contact_id", *SPELLINGS["contact_id"])}


def pick(rows: Rows, spec: Spec, options: Options, fields: Collection[str] = ()) -> Picked:
    """The columns that a kind takes; `fields` are the custom fields' ids and labels. InputError when columns
    are missing, unknown, there twice or may be two things: one sentence about all of them."""
    own = list(fields) if spec.takes_fields else []
    names = [several[0] for several in spec.names.values()] + own
    exact = {fold(name): name for name in reversed(own)}
    exact |= {fold(name): column for column, several in spec.names.items() for name in several}
    titles = {fold(title): title for title in rows.columns}
    mapped = _mapped(titles, options.mapping, exact, names)
    ignored = {_existing(titles, name, "--ignore") for name in options.ignore}
    left = [each for each in rows.columns if each not in ignored]
    meanings = _meanings(spec, (name for name in exact.values() if name not in spec.names))
    called = (
        _guesses((each for each in left if each not in mapped and fold(each) not in exact), meanings) | mapped
    )
    found: dict[str, str] = {}  # our column or a custom field → the title that is it
    unknown: list[str] = []
    warnings: list[str] = []
    for title in sorted(left, key=lambda each: (each not in mapped, each in called)):
        if (name := called.get(title) or exact.get(fold(title))) is None:
            unknown.append(title)
        elif (other := found.setdefault(name, title)) in mapped and title not in mapped:
            warnings.append(
                f"column {shown(title)} is left out, since --map takes {shown(other)} in its place"
            )
        elif other != title:
            raise _two_for_one(other, title, called)
    passed_over = {
        ours: title
        for name, title in found.items()
        if name not in spec.names
        for ours in meanings.get(_bare(title), ())
    }
    _check(spec, found, unknown, names, passed_over)
    cells = {name: rows.cells[title] for name, title in found.items() if name in spec.names}
    of_fields = {
        called.get(title, title): rows.cells[title] for name, title in found.items() if name not in spec.names
    }
    means = {title: name for name, title in found.items() if title in called}
    return Picked(
        cells,
        of_fields,
        tuple(warnings),
        tuple((means[title], title) for title in rows.columns if title in means),
    )


def _meanings(spec: Spec, fields: Iterable[str]) -> _Meanings:
    found: dict[str, dict[str, None]] = {}
    for column, names in spec.names.items():
        for name in (*names, *SPELLINGS.get(column, ())):
            found.setdefault(_bare(name), {})[column] = None
    families = {_bare(name): family for family in FIELD_FAMILIES for name in family}
    for label in fields:
        for name in families.get(_bare(label), (label,)):
            found.setdefault(_bare(name), {})[label] = None
    return found


def _guesses(titles: Iterable[str], meanings: _Meanings) -> dict[str, str]:
    """Title → the column or field that it means. InputError for one that may mean several."""
    found: dict[str, str] = {}
    for title in titles:
        several = list(meanings.get(_bare(title), ()))
        if len(several) > 1:
            means = f"{', '.join(map(shown, several[:-1]))} or {shown(several[-1])}"
            raise InputError(
                f"the column {shown(title)} may be {means}: say which it is, like "
                f"{_map_option(several[0], title)}"
            )
        if several:
            found[title] = several[0]
    return found


def _two_for_one(first: str, other: str, guessed: Mapping[str, str]) -> InputError:
    if first in guessed:
        either = f"the columns {shown(first)} and {shown(other)} may both be {shown(guessed[first])}"
        return InputError(f"{either}: say which it is, like {_map_option(guessed[first], first)}")
    return InputError(
        f"the columns {shown(first)} and {shown(other)} mean the same: remove one, or leave it out "
        "with --ignore"
    )


def _map_option(ours: str, theirs: str) -> str:
    return "--map " + shlex.quote(f"{shown(ours)[1:-1]}={shown(theirs)[1:-1]}")


def _mapped(
    titles: Mapping[str, str], mapping: Mapping[str, str], exact: Mapping[str, str], names: list[str]
) -> dict[str, str]:
    """The input's title → our column or the custom field that --map says it is."""
    for name in mapping:
        if fold(name) not in exact:
            raise InputError(
                f"--map {name}=…: there is no column {shown(name)}{_near(name, names)}; it is "
                "--map ours=theirs"
            )
    return {_existing(titles, theirs, "--map"): exact[fold(name)] for name, theirs in mapping.items()}


def _existing(titles: Mapping[str, str], name: str, option: str) -> str:
    title = name if name in titles.values() else titles.get(fold(name))
    if title is None:
        raise InputError(
            f"{option}: the input has no column {shown(name)}{_near(name, titles.values())}; it has "
            f"{_list(titles.values())}"
        )
    return title


def _check(
    spec: Spec, found: Collection[str], unknown: list[str], names: list[str], passed_over: Mapping[str, str]
) -> None:
    """`passed_over`: what usually has a title that is the exact name of a custom field here → that title."""
    missing = [group for group in spec.needs if not any(column in found for column in group)]
    if not missing and not unknown:
        return
    if any("@" in title for title in unknown):
        raise InputError(
            "the first row looks like data: the input needs a first row with the columns' names, like email"
        )
    lacks = " and ".join(" or ".join(spec.names[column][0] for column in group) for group in missing)
    parts = [f"the input has no column {lacks}"] if missing else []
    for column in (column for group in missing for column in group if column in passed_over):
        title = passed_over[column]
        parts.append(
            f"{shown(title)} is a custom field here: if it is meant, write {_map_option(column, title)}"
        )
    if unknown:
        verb = "is a column" if len(unknown) == 1 else "are columns"
        parts.append(
            ", ".join(f"{shown(title)}{_near(title, names)}" for title in unknown[:10])
            + f" {verb} that nothing is known about"
        )
    known = f"; known are {_list(dict.fromkeys(names))}" if unknown else ""
    advice = (
        "name a column with --map ours=theirs"
        + (", or add it to the input" if missing else "")
        + (", leave one out with --ignore NAME" if unknown else "")
    )
    raise InputError(f"{'; '.join(parts)}{known}; {advice}")


def _near(name: str, known: Iterable[str]) -> str:
    by_fold = {fold(each[:_LONGEST_NAME]): each for each in reversed(list(known))}
    near = difflib.get_close_matches(fold(name[:_LONGEST_NAME]), by_fold, n=1, cutoff=0.6)
    return f" (did you mean {shown(by_fold[near[0]])}?)" if near else ""


def _list(names: Iterable[str]) -> str:
    many = list(names)
    return ", ".join(shown(name)[1:-1] for name in many[:20]) + (
        f" and {len(many) - 20} more" if len(many) > 20 else ""
    )
