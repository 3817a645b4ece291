"""Texts of strangers do nothing where they are shown but be read."""

import logging
import re
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from home.logs import logging_to_home
from home.settings import Settings
from marketing_api.client import Connection, Secret
from marketing_api.redaction import in_log, markdown_block, plain
from tests.warehouse.conftest import home  # noqa: F401 (a fixture)

HOSTILE = (
    "![a](https://x.example/b.png)", '<img src="https://x.example/b.png">', "<script>alert(1)</script>", "[a](javascript:alert(1))",
    "a | b | c",
    "``` ```", "`a`", "a\n\n| b |\n|---|", "\\[a](b)", "&lt;img src=x&gt;", "\x1b]0;title\x07\x1b[2J", "\x9b31m", "a\r\nb",
    "\u202etxt.exe", "\u2028x",
    "<!-- ", "![a][b]", "[b]: https://x.example/b.png", "=HYPERLINK(\"x\")", "\ud800",
)  # fmt: skip
TEXTS = st.text(max_size=60) | st.lists(st.sampled_from(HOSTILE), max_size=4).map(" ".join)
FORGED = "2026-11-22 00:00:00,000 ERROR root: nothing happened"


@given(TEXTS)
def test_a_terminal_obeys_nothing(text: str) -> None:
    shown = plain(text)
    assert not re.search(
        r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]", shown
    )
    assert plain(shown) == shown
    shown.encode()  # no half of a surrogate pair


@given(st.lists(TEXTS, max_size=5))
def test_no_line_ends_a_block_of_code(lines: list[str]) -> None:
    first, *inner, last = markdown_block(lines).split("\n")
    assert first == last
    assert len(first) >= 3
    assert not any(first in line for line in inner)


@given(TEXTS)
def test_no_text_forges_an_entry_of_a_log(text: str) -> None:
    assert not any(line[:1].strip() for line in in_log(f"x\n{text}").split("\n")[1:])


def test_the_log_of_a_home_has_one_entry_for_each_message(tmp_path: Path) -> None:
    settings = Settings(tmp_path, (Connection("main", "http://127.0.0.1:1", Secret("k3y-of-the-test")),))
    with logging_to_home(settings, "test") as file:
        logging.getLogger("x").error("refused: %s", f"no\n{FORGED}\x1b[2J")
    (entry, forged) = file.path.read_text().splitlines()
    assert entry.endswith("refused: no")
    assert forged == f"    {FORGED}\ufffd[2J"
