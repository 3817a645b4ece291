"""Texts of others can't hold the program up: every regular expression is linear, or its text is cut."""

import contextlib
import time
from collections.abc import Iterator

import pytest

from marketing_api import validation, write_result
from marketing_api.address import mask_addresses
from marketing_api.operations import find
from marketing_api.records import reputation, values
from tests.patterns import MB, PACKAGES, Found, patterns, plainly, worst
from tests.warehouse.exchanges import envelope, exchange
from warehouse.forgetting import Forgotten, Person
from write_back import push_report, unknown_outcomes

#: Patterns over texts that are cut to so many letters. Of the first, many stand in one answer: they are
#: measured on 1 MB of such texts, like those that are not cut; of the others, there is one in an answer.
CUT = {"marketing_api.records.values._CLICKER": values._LONGEST_CLICKER}
ONCE = {
    f"marketing_api.write_result.{name}": write_result._LONGEST
    for name in ("_HARMLESS", "_ALREADY", "_WITHOUT_TAG", "_ABSENT", "_CANNOT_BE", "_NEGATIVE")
}
#: Times what `plainly` takes, so that a slow machine is no slow pattern. The slowest has 6; one that is not
#: linear has thousands.
_MOST = 10


@pytest.fixture(scope="module")
def found() -> list[Found]:
    return list(patterns())


@pytest.mark.parametrize("package", PACKAGES)
@pytest.mark.slow
def test_every_pattern_takes_a_megabyte_of_its_worst_letters_about_as_any_text(
    found: list[Found], package: str
) -> None:
    assert not [
        slow for each in found if each.module.partition(".")[0] == package for slow in _find_slow_text(each)
    ]


def _find_slow_text(found: Found) -> Iterator[str]:
    """A moment in which the machine did something else is not the pattern's: it is measured again."""
    name = f"{found.module}.{found.name}"
    size = CUT.get(name, ONCE.get(name, MB))
    share = size / MB if name in ONCE else 1
    for _ in range(3):
        seconds, begin = worst(found, size)
        times = seconds * share / plainly()
        if times <= _MOST:
            return
    yield f"{found.module}:{found.line}: {times:.3g} times a plain search for 1 MB that begins {begin}"


def test_the_patterns_are_found(found: list[Found]) -> None:
    """Among them one made in a function, and one that only a running program knows."""
    names = {(each.module, each.name) for each in found}
    assert {
        ("marketing_api.write_result", "text"),
        ("warehouse.duckdb_errors", "_HOLDER"),
        ("marketing_api.redaction", "self._pattern"),
    } <= names


_ANN = Forgotten(b"a key", frozenset(Forgotten(b"a key").fingerprints_of(Person(("ann@example.com",)))))
_ADDTAG = find("emailmarketing/addtag")
_USES = {
    "read_clicker": lambda text: values.read_clicker(text),
    "read_moment": lambda text: values.read_moment(text, values.dt.UTC),
    "read_int": lambda text: values.read_int(text),
    "read_bool": lambda text: values.read_bool(text),
    "read_word": lambda text: values.read_word(text),
    "read_share": lambda text: values.read_share(text),
    "read_rating": reputation.read_rating,
    "public": validation._mask_words,
    "objection": lambda text: write_result.find_objection(_ADDTAG, {"tag": text[:10_000]}, {"item": text}),
    "says_absent": write_result.says_absent,
    "mask_addresses": mask_addresses,
    "without_values": push_report._without_values,
    "forgotten": lambda text: _ANN.cut_exchange(exchange(envelope({"clickers": [text]}))),
    "likeness": lambda text: unknown_outcomes._compare_texts(text[:10_000], text),
}
#: Letters, and pieces of what readers look for.
_UNITS = [*"a1 @.\"'<\\(%-é“"]
_UNITS += ["a@", "a.", "1 ", "a ", "41 79 ", "contact ", "%25", "'a", "&#", "&#9", "\\\\/", "<a", "[1,"]
_UNITS += ['{"a":', "i:1;", "a:1:{", "clicks ", "0 "]


@pytest.mark.attack
@pytest.mark.parametrize("use", _USES)
def test_every_reader_of_a_text_is_done_with_a_megabyte_in_a_moment(use: str) -> None:
    for unit in _UNITS:
        text = (unit * MB)[:MB]
        began = time.thread_time()
        with contextlib.suppress(ValueError):
            _USES[use](text)
        assert time.thread_time() - began < 6 * _MOST * plainly(), f"{use}: a megabyte of {unit!r}"
