"""What the report looks like: its colours, and the styles of `templates/looks.css` as each element carries them.

Mail programs drop style sheets, so an element's style is written into it (`look`). The sheet only overrides, with `!important`, for the
dark, phones and paper.
"""

import re
from functools import cache
from pathlib import Path

from markupsafe import Markup

TEMPLATES = Path(__file__).parent / "templates"

#: Colour, as `var(--name)` in looks.css → in the light, in the dark. A picture's greys keep 3:1 to the page, texts 4.5:1 (WCAG 2.2).
PALETTE = {
    "ink": ("#17211f", "#e6edea"),
    "muted": ("#56655f", "#9fb0a9"),
    "rule": ("#dfe5e2", "#2a3532"),
    "soft": ("#f4f7f6", "#19211f"),
    "paper": ("#ffffff", "#0f1514"),
    "accent": ("#0f766e", "#4cc9b9"),
    "second": ("#7f8f88", "#6f8279"),
}
_RULE = re.compile(r"^\.([\w-]+) *\{ *(.*?);? *\}$", re.MULTILINE)
_VARIABLE = re.compile(r"var\(--(\w+)\)")


@cache
def look(names: str) -> Markup:
    """The attributes of an element that looks so, e.g. `look("cell number")`: classes for the sheet, and their styles."""
    styles = ";".join(filter(None, (_coloured(_looks()[name], is_dark=False) for name in names.split())))
    return Markup('class="{}" style="{}"').format(names, styles) if styles else Markup('class="{}"').format(names)


@cache
def dark_rules() -> Markup:
    """What the sheet overrides in the dark: every style that has a colour."""
    coloured = {name: [style for style in styles.split(";") if "var(" in style] for name, styles in _looks().items()}
    rules = (f".{name}{{{';'.join(f'{style}!important' for style in styles)}}}" for name, styles in coloured.items() if styles)
    return Markup(_coloured("\n".join(rules), is_dark=True))  # noqa: S704 (our own file)


@cache
def _looks() -> dict[str, str]:
    return dict(_RULE.findall((TEMPLATES / "looks.css").read_text("utf-8")))


def _coloured(styles: str, *, is_dark: bool) -> str:
    return _VARIABLE.sub(lambda name: PALETTE[name[1]][is_dark], styles)
