"""Finds every regular expression of the packages and measures it on the worst texts that its own letters
make.

Patterns of SQL are not here: DuckDB's RE2 is linear by construction."""

import ast
import builtins
import importlib
import itertools
import math
import pkgutil
import re
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from marketing_api.redaction import Redactor, Secret
from write_back.refusals import REFUSALS

PACKAGES = ("marketing_api", "warehouse", "assets", "home", "write_back", "upkeep", "pipelines")
MB = 1_000_000
_LETTER = re.compile("[a-z]")
#: Lengths at which a pattern that is quadratic or worse shows itself without taking long.
_PROBES, _SLOW_PROBE = (100, 1_000, 4_000), 0.004
_MODULE_FUNCTIONS = {
    "compile": 1,
    "search": 2,
    "match": 2,
    "fullmatch": 2,
    "findall": 2,
    "finditer": 2,
    "sub": 4,
    "subn": 4,
    "split": 3,
}
_USES: dict[str, Callable[[re.Pattern[Any], Any], Any]] = {
    "search": lambda pattern, text: pattern.search(text),
    "sub": lambda pattern, text: pattern.sub(text[:0], text),
    "match": lambda pattern, text: pattern.match(text),
    "fullmatch": lambda pattern, text: pattern.fullmatch(text),
}
#: Whatever walks along the text is as quick as replacing.
_SAME = {"subn": "sub", "split": "sub", "findall": "sub", "finditer": "sub"}
#: Made of nothing but what a running program has.
RUNNING = {
    "marketing_api.redaction": Redactor(Secret('k+"ä/k'))._pattern,
    "write_back.refusals": re.compile("|".join(each.pattern.pattern for each in REFUSALS)),
}
#: What has neither a pattern nor a use of one need not be parsed.
_MENTIONS = re.compile(rf"\.({'|'.join([*_MODULE_FUNCTIONS, *_USES, *_SAME])})\b")
_LETTERS = ' a1@."<\n'


@dataclass(frozen=True)
class Found:
    """A pattern, its module and line, its name if it has one, and how it is used."""

    module: str
    line: int
    name: str
    pattern: re.Pattern[Any]
    uses: frozenset[str]


class _Anything(str):
    """Stands for a value that only a running program has."""

    __slots__ = ()

    def __getattr__(self, name: str) -> "_Anything":
        return self

    def __call__(self, *args: Any, **named: Any) -> "_Anything":
        return self


class _Names(dict[str, Any]):
    def __missing__(self, name: str) -> Any:
        return _Anything("aa")


def patterns() -> Iterator[Found]:
    """Every call of `re` in the sources, with what its module knows; runtime values are `aa`."""
    sources = {module: Path(module.__file__ or "").read_text(encoding="utf-8") for module in _modules()}
    trees = {module: ast.parse(source) for module, source in sources.items() if _MENTIONS.search(source)}
    uses = _uses_by_name(trees)
    for module, tree in trees.items():
        calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and _is_of_re(node.func)]
        assigned = (
            {id(node.value): node.targets[0] for node in ast.walk(tree) if isinstance(node, ast.Assign)}
            if calls
            else {}
        )
        for call in calls:
            if isinstance(call.func, ast.Attribute) and call.func.attr in _MODULE_FUNCTIONS:
                name = ast.unparse(assigned[id(call)]) if id(call) in assigned else ""
                place = (module.__name__ if _last(name).startswith("_") else "", _last(name))
                used = uses[place] if call.func.attr == "compile" else {call.func.attr}
                kinds = frozenset(_SAME.get(use, use) for use in used) or frozenset(_USES)
                yield Found(module.__name__, call.lineno, name, _compiled(module, call), kinds)


def _is_of_re(function: ast.expr) -> bool:
    return (
        isinstance(function, ast.Attribute)
        and isinstance(function.value, ast.Name)
        and function.value.id == "re"
    )


def _modules() -> Iterator[ModuleType]:
    for package in map(importlib.import_module, PACKAGES):
        yield package
        for info in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if not info.name.endswith("__main__"):
                yield importlib.import_module(info.name)


def _uses_by_name(trees: Mapping[ModuleType, ast.Module]) -> dict[tuple[str, str], set[str]]:
    """(module, name) of a compiled pattern → methods used on it there; ("", name) → anywhere."""
    found: dict[tuple[str, str], set[str]] = defaultdict(set)
    for module, tree in trees.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute) and node.attr in {*_USES, *_SAME}:
                for place in (module.__name__, ""):
                    found[place, _last_name(node.value)].add(node.attr)
    return found


def _last_name(value: ast.expr) -> str:
    """Of a call and the like, the text behind its last dot."""
    if isinstance(value, ast.Name):
        return value.id
    return value.attr if isinstance(value, ast.Attribute) else _last(ast.unparse(value))


def _last(name: str) -> str:
    return name.rpartition(".")[2]


def _compiled(module: ModuleType, call: ast.Call) -> re.Pattern[Any]:
    if module.__name__ in RUNNING:
        return RUNNING[module.__name__]
    assert isinstance(call.func, ast.Attribute)
    names = _Names({**vars(builtins), **vars(module)})
    flags = call.args[_MODULE_FUNCTIONS[call.func.attr] :] + [
        keyword.value for keyword in call.keywords if keyword.arg == "flags"
    ]
    source, *numbers = (
        eval(compile(ast.Expression(part), module.__name__, "eval"), {}, names)
        for part in (call.args[0], *flags)
    )
    assert not isinstance(source, _Anything), (
        f"{module.__name__}:{call.lineno}: write the pattern where it can be found"
    )
    return re.compile(source, sum(map(int, numbers)))


def _recipes(pattern: re.Pattern[Any]) -> list[tuple[str, str, str]]:
    """(unit, head, tail) of texts that make it try again and again: repeats of its letters, of pairs, of what
    nearly matches, with an odd end."""
    parse = sys.modules["re._parser"].parse  # type: ignore[attr-defined]
    sample, letters = _sample(parse(pattern.pattern, pattern.flags))
    own = dict.fromkeys([*_LETTERS, *letters])
    units = [
        *own,
        *(a + b for a, b in itertools.permutations(list(own)[:16], 2)),
        sample,
        sample[:-1],
        sample[:1] + sample,
    ]
    made = itertools.product(
        dict.fromkeys(filter(None, units)), dict.fromkeys(["", sample, sample[:1]]), ("", "\x01")
    )
    return [(unit, head, tail) for unit, head, tail in made if len(unit) == 1 or not head]


def _text(pattern: re.Pattern[Any], recipe: tuple[str, str, str], length: int) -> Any:
    unit, head, tail = recipe
    text = (head + unit * (length // len(unit) + 1))[: length - 1] + tail
    return text.encode("latin-1", "replace") if isinstance(pattern.pattern, bytes) else text


def _sample(tree: Any) -> tuple[str, list[str]]:
    """A text that about matches, and a letter of each literal and class of the pattern."""
    made: list[str] = []
    letters: list[str] = []
    for kind, value in tree:
        name = str(kind)
        inner: tuple[str, list[str]] = ("", [])
        if name in ("LITERAL", "NOT_LITERAL", "ANY"):
            inner = (letter := chr(value) if name == "LITERAL" else "a", [letter])
        elif name == "IN":
            inner = ((found := _members(value))[0], found)
        elif name == "BRANCH":
            branches = [_sample(branch) for branch in value[1]]
            inner = branches[0][0], [letter for _, several in branches for letter in several]
        elif name in ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"):
            text, several = _sample(value[2])
            inner = text * max(1, min(value[0], 3)), several
        elif name in ("SUBPATTERN", "ATOMIC_GROUP", "ASSERT"):
            text, several = _sample(value[-1] if isinstance(value, tuple) else value)
            inner = "" if name == "ASSERT" else text, several
        made.append(inner[0])
        letters += inner[1]
    return "".join(made), letters


def _members(items: Any) -> list[str]:
    found: list[str] = []
    for kind, value in items:
        if str(kind) in ("LITERAL", "RANGE"):
            found.append(chr(value if str(kind) == "LITERAL" else value[0]))
        elif str(kind) == "CATEGORY":
            found.append(
                {"CATEGORY_DIGIT": "1", "CATEGORY_SPACE": " ", "CATEGORY_WORD": "a"}.get(str(value), "-")
            )
    return ["b", *found] if str(items[0][0]) == "NEGATE" else found or ["a"]


def worst(found: Found, size: int = MB, most: float = 0.5) -> tuple[float, str]:
    """Processor seconds for 1 MB, in pieces of `size`, of the slowest text, however the pattern is used; and
    how that text begins.

    A text that takes longer than `most` at a shorter length is not tried longer: what it would take follows
    from how it grows."""
    slow = sorted(_probed(found, size), reverse=True)[:3]
    return max(
        (_grown(found, recipe, length, size, most) for _, recipe, length in slow), key=lambda pair: pair[0]
    )


def plainly() -> float:
    """Processor seconds of a search through 1 MB that stops at every letter, on this machine now."""
    began = time.thread_time()
    _LETTER.findall("a" * MB)
    return time.thread_time() - began


def _probed(found: Found, size: int) -> Iterator[tuple[float, tuple[str, str, str], int]]:
    """(seconds per letter, recipe, length) of each text, at the longest probe that is still quick."""
    for recipe in _recipes(found.pattern):
        for length in _PROBES:
            text = _text(found.pattern, recipe, min(length, size))
            if (seconds := _seconds(found, text)) > _SLOW_PROBE:
                break
        yield seconds / len(text), recipe, len(text)


def _grown(
    found: Found, recipe: tuple[str, str, str], length: int, size: int, most: float
) -> tuple[float, str]:
    before, shorter = 0.0, length
    while True:
        text = _text(found.pattern, recipe, length)
        seconds = _seconds(found, text)
        if seconds > most or length >= size:
            break
        before, shorter, length = seconds, length, min(size, length * 4)
    power = min(3, max(1, round(math.log(seconds / before, length / shorter)))) if before > 0 else 2
    seconds *= (size / length) ** power
    return seconds * MB / size, repr(text[:30])


def _seconds(found: Found, text: Any) -> float:
    slowest = 0.0
    for use in found.uses:
        began = time.thread_time()
        _USES[use](found.pattern, text)
        slowest = max(slowest, time.thread_time() - began)
    return slowest
