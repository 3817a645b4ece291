"""Texts of strangers made harmless where they are shown: on a terminal, in a log, in Markdown.

Not here: HTML (`pipelines.report.render`), cells of a spreadsheet (`rejected.defused`), addresses of people (`discretion`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

#: What moves a cursor, hides or reverses text, or ends a line unseen; tabs and line feeds are left.
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufeff]")
#: With these Markdown makes images, links, HTML, tables and code.
_MARKS = re.compile(r"[\\`*\[\]<>|~&]")


def plain(text: object) -> str:
    """The text with � in place of every character that a terminal obeys rather than shows."""
    return _CONTROLS.sub("\ufffd", str(text).replace("\r\n", "\n"))


def in_log(text: str) -> str:
    """The same as one entry of a log: further lines are indented, so that none looks like an entry of its own."""
    return plain(text).replace("\n", "\n    ")


def in_markdown(text: object) -> str:
    """On one line, read as it is written: no markup of its own takes effect, so nothing is loaded from elsewhere."""
    return _MARKS.sub(r"\\\g<0>", " ".join(plain(text).split()))


def markdown_table(header: Sequence[str], rows: Iterable[Iterable[object]]) -> str:
    """The cells are any texts; None is empty."""
    cells = [[in_markdown("" if cell is None else cell) for cell in row] for row in (header, *rows)]
    lines = [f"| {' | '.join(row)} |" for row in cells]
    return "\n".join([lines[0], f"| {' | '.join(['---'] * len(header))} |", *lines[1:]])


def markdown_block(lines: Iterable[str]) -> str:
    """Lines as they are, in a block of code that none of them can end."""
    inner = "\n".join(map(plain, lines))
    fence = "`" * (max((len(run) for run in re.findall("`+", inner)), default=2) + 1)
    return f"{max(fence, '```')}\n{inner}\n{max(fence, '```')}"
