"""HTML as values: elements are made by `tag`, and every text in them is escaped. Not here: what they look like (`style`)."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable
from typing import TypeAlias

from pipelines.report.style import STYLES

#: What no document may hold, and what turns the direction of all text behind it.
_UNFIT = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]")
_EMPTY = {"br", "meta", "rect", "line", "path", "circle"}


class Html(str):
    """Text that is HTML already; only this module makes it of other text."""

    __slots__ = ()


Child: TypeAlias = "str | int | Iterable[Child] | None"


def text(value: object) -> Html:
    """Any text, as it is to be read."""
    return Html(html.escape(_UNFIT.sub("", str(value)), quote=True))


def tag(element: str, /, *children: Child, **attributes: str | int | float | None) -> Html:
    """An element; children that are not Html are escaped, None is nothing.

    `look` names styles of `style.STYLES`: they are written into the element, since mail programs drop style sheets, and kept as its
    class, since dark colours, phones and paper need the sheet. Other attributes: `colspan=2`, `aria_label="…"`.
    """
    look = str(attributes.pop("look", None) or "")
    if look:
        styles = [STYLES[one] for one in look.split()] + [str(attributes.pop("style", ""))]
        attributes |= {"class": look, "style": ";".join(filter(None, styles))}
    words = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{text(value)}"' for key, value in attributes.items() if value is not None and value != ""
    )
    if element in _EMPTY and not children:
        return Html(f"<{element}{words}>" if element in ("br", "meta") else f"<{element}{words}/>")
    return Html(f"<{element}{words}>{join(children)}</{element}>")


def join(children: Child) -> Html:
    """One after the other."""
    if children is None:
        return Html("")
    if isinstance(children, Html):
        return children
    if isinstance(children, str | int):
        return text(children)
    return Html("".join(join(child) for child in children))
