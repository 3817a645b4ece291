"""Charts as small SVG pictures with a title, units and a text alternative: from numbers to Html. Not here: which numbers (`sections`).

They are drawn as wide as a phone, and as large as read there, so that two stand side by side on a screen. Colours are attributes for
programs without style sheets, and classes for the dark.
"""

from __future__ import annotations

import datetime as dt
import math
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from pipelines.report.html import Child, Html, tag
from pipelines.report.style import CHART_COLOURS
from pipelines.report.words import short_day

WIDTH = 374
_PLOT_HEIGHT = 150
_LINE_HEIGHT = 36  # of one labelled bar
_TOP, _BOTTOM = 8, 22  # above the plot: half of the upper tick's label; below it: dates
_LEFT = 44  # for the ticks' labels, at least
_LETTER, _CAPITAL, _WIDEST = 6.8, 9.0, 13.0  # of the font on most machines, rather too much

Shown = Callable[[float], str]


@dataclass(frozen=True, slots=True)
class Bar:
    """One labelled bar; `value` None is drawn as nothing and shown as the dash that `shown` is."""

    label: str
    value: float | None
    shown: str


@dataclass(frozen=True, slots=True)
class Column:
    """One day or week: what goes up and what goes down; None where that is not known."""

    on: dt.date
    up: float | None
    down: float | None = 0


def bars(
    title: str,
    items: Sequence[Bar],
    *,
    axis: Shown,
    unit: float = 1,
    note: str = "",
    reference: tuple[float, str] | None = None,
    top: float = 0,
) -> Html:
    """Labelled horizontal bars on one scale from 0, at least to `top`, with its axis below; its ticks are multiples of `unit`.

    `reference`: a value that they are compared with, and its name.
    """
    ticks = _ticks(0, max([top] + [item.value or 0 for item in items] + [reference[0] if reference else 0]), unit=unit)
    rows = len(items) * _LINE_HEIGHT
    mark = _place(reference[0], ticks[-1]) if reference else None
    shapes: list[Child] = [_bar(item, place * _LINE_HEIGHT, ticks, mark) for place, item in enumerate(items)]
    for value in ticks:
        anchor = "end" if value == ticks[-1] else "middle" if value else None
        shapes.append(_text(axis(value), value / ticks[-1] * WIDTH, rows + 10, "axis", anchor=anchor))
    if reference and mark:
        shapes.append(_text(reference[1], mark, rows + 26, "axis", anchor="end" if mark > WIDTH / 2 else "start"))
    height = rows + (30 if reference else 14)
    said = "; ".join(f"{item.label}: {item.shown}" for item in items)
    return figure(title, shapes, height, said, note)


def _place(value: float, top: float) -> float:
    return min(max(value / top * WIDTH, 1), WIDTH - 1)


def _bar(item: Bar, y: float, ticks: Sequence[float], mark: float | None) -> list[Html]:
    places = [min(max(value / ticks[-1] * WIDTH, 0.5), WIDTH - 0.5) for value in ticks]
    return [
        _text(_fitting(item.label, WIDTH - _width(item.shown) - 12), 0, y + 13, "ink"),
        _text(item.shown, WIDTH, y + 13, "ink", anchor="end"),
        *(tag("line", x1=_n(x), x2=_n(x), y1=y + 19, y2=y + 27, stroke=CHART_COLOURS["rule"], class_="s-rule") for x in places),
        *([_shape("rect", "accent", x=0, y=y + 19, width=_n(_place(item.value, ticks[-1])), height=8, rx=2)] if item.value else []),
        *([_shape("rect", "ink", x=_n(mark - 0.75), y=y + 19, width=1.5, height=11)] if mark else []),
    ]


def line(title: str, points: Sequence[tuple[dt.date, float]], *, shown: Shown, note: str = "") -> Html:
    """One value over time. The axis need not begin at 0: it shows change."""
    ticks = _ticks(min(value for _, value in points), max(value for _, value in points))
    left = _left(ticks, shown)
    first, last = points[0][0], points[-1][0]
    days = max((last - first).days, 1)
    places = [(left + (on - first).days / days * (WIDTH - left - 5), _y(value, ticks)) for on, value in points]
    shapes: list[Child] = [_grid(ticks, shown), _dates(first, last, left)]
    shapes.append(
        tag(
            "path",
            d="M" + "L".join(f"{_n(x)} {_n(y)}" for x, y in places),
            fill="none",
            stroke=CHART_COLOURS["accent"],
            class_="s-accent",
            stroke_width=2,
            stroke_linejoin="round",
        )
    )
    shapes.append(_shape("circle", "accent", cx=_n(places[-1][0]), cy=_n(places[-1][1]), r=4))
    said = f"from {shown(points[0][1])} on {short_day(first)} to {shown(points[-1][1])} on {short_day(last)}"
    return figure(title, shapes, _TOP + _PLOT_HEIGHT + _BOTTOM, said, note or f"{said[0].upper()}{said[1:]}.")


def columns(title: str, items: Sequence[Column], *, names: tuple[str, str], unit: str, note: str = "") -> Html:
    """What goes up above the axis, in the accent's colour; what goes down below it, in the second one."""
    ticks = _ticks(-max(item.down or 0 for item in items), max(item.up or 0 for item in items))
    left = _left(ticks, _unsigned)
    step = (WIDTH - left) / len(items)
    wide = max(step * 0.72, 1.5)
    shapes: list[Child] = [_grid(ticks, _unsigned)]
    for place, item in enumerate(items):
        x, zero = left + place * step + (step - wide) / 2, _y(0, ticks)
        up, down = _y(item.up or 0, ticks), _y(-(item.down or 0), ticks)
        shapes += [_shape("rect", "accent", x=_n(x), y=_n(up), width=_n(wide), height=_n(zero - up))] if item.up else []
        shapes += [_shape("rect", "second", x=_n(x), y=_n(zero), width=_n(wide), height=_n(down - zero))] if item.down else []
    shapes += [_axis(_y(0, ticks), left), _dates(items[0].on, items[-1].on, left)]
    totals = _total(names[0], [(item.on, item.up) for item in items]), _total(names[1], [(item.on, item.down) for item in items])
    said = f"{', '.join(filter(None, totals))}; {unit} from {short_day(items[0].on)} on"
    return figure(title, shapes, _TOP + _PLOT_HEIGHT + _BOTTOM, said, note or f"{said[0].upper()}{said[1:]}.")


def _total(name: str, values: Sequence[tuple[dt.date, float | None]]) -> str:
    """E.g. `left 12`, `left 12 since 3 Mar` where it is not known before."""
    known = [(on, value) for on, value in values if value is not None]
    if not name or not known:
        return f"{name} not known" if name else ""
    since = f" since {short_day(known[0][0])}" if known[0][0] != values[0][0] else ""
    return f"{name} {sum(value for _, value in known):,.0f}{since}"


def stack(title: str, parts: Sequence[tuple[str, float]], *, unit: str) -> Html:
    """Parts of a whole in one bar over the whole width, from the strongest colour to the faintest; `swatch` says which is which."""
    whole = sum(value for _, value in parts) or 1
    shapes: list[Child] = []
    x = 0.0
    for place, (_, value) in enumerate(parts):
        width = value / whole * 2 * WIDTH
        shapes.append(_shape("rect", "accent", x=_n(x), y=0, width=_n(max(width - 2, 0)), height=24, opacity=_strength(place, len(parts))))
        x += width
    said = "; ".join(f"{label}: {value:,.0f} {unit}, {100 * value / whole:.1f} %" for label, value in parts)
    return figure("", shapes, 24, f"{title}: {said}", "", wide=2 * WIDTH)


def swatch(place: int, count: int) -> Html:
    """The colour of a part of a `stack`, to stand before its name."""
    square = _shape("rect", "accent", width=10, height=10, rx=2, opacity=_strength(place, count))
    return tag("svg", square, xmlns="http://www.w3.org/2000/svg", width=10, height=10, aria_hidden="true", style="margin-right:8px")


def _strength(place: int, count: int) -> str:
    return _n(1 - 0.8 * place / max(count - 1, 1), 2)


def figure(title: str, shapes: Child, height: float, said: str, note: str, *, wide: int = WIDTH) -> Html:
    """The picture with its title above and its note below; `said` is what it shows, for who cannot see it."""
    label = f"{title}: {said}" if title else said
    picture = tag(
        "svg",
        tag("title", label),
        shapes,
        look="picture",
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {wide} {_n(height)}",
        width=wide,
        height=_n(height),
        role="img",
        aria_label=label,
    )
    caption = tag("figcaption", title, look="chart-title") if title else None
    below = tag("p", note, look="chart-note") if note else None
    return tag("figure", caption, picture, below, look="chart" if wide == WIDTH else "wide-chart")


def _unsigned(value: float) -> str:
    return f"{abs(value):,.0f}"


def _left(ticks: Sequence[float], shown: Shown) -> float:
    """Where the plot begins: behind the longest label."""
    return max(_LEFT, 8 + max(_width(shown(value)) for value in ticks))


def _grid(ticks: Sequence[float], shown: Shown) -> Iterator[Html]:
    left = _left(ticks, shown)
    for value in ticks:
        y = _y(value, ticks)
        yield tag("line", x1=_n(left), x2=WIDTH, y1=_n(y), y2=_n(y), stroke=CHART_COLOURS["rule"], class_="s-rule")
        yield _text(shown(value), left - 8, y + 4, "axis", anchor="end")


def _axis(y: float, left: float) -> Html:
    return tag("line", x1=_n(left), x2=WIDTH, y1=_n(y), y2=_n(y), stroke=CHART_COLOURS["axis"], class_="s-axis")


def _dates(first: dt.date, last: dt.date, left: float) -> list[Html]:
    y = _TOP + _PLOT_HEIGHT + 16
    return [_text(short_day(first), left, y, "axis"), *([_text(short_day(last), WIDTH, y, "axis", anchor="end")] if last != first else [])]


def _text(words: str, x: float, y: float, colour: str, anchor: str | None = None) -> Html:
    return tag(
        "text", words, x=_n(x), y=_n(y), fill=CHART_COLOURS[colour], class_=f"c-{colour}", font_size=12, text_anchor=anchor,
        style="font-variant-numeric:tabular-nums",
    )  # fmt: skip


def _fitting(words: str, room: float) -> str:
    """The text, or as much of its beginning as has room, with `…`."""
    words = " ".join(words.split())
    if _width(words) <= room:
        return words
    while words and _width(words) > room - _WIDEST:
        words = words[:-1]
    return words.rstrip() + "…"


def _width(words: str) -> float:
    """How wide a text is at most, estimated: pictures have no font to ask."""
    return sum(
        _WIDEST if unicodedata.east_asian_width(letter) in "WF" or letter in "MW@%" else _CAPITAL if letter.isupper() else _LETTER
        for letter in words
    )


def _shape(name: str, colour: str, **attributes: str | int | float | None) -> Html:
    return tag(name, fill=CHART_COLOURS[colour], class_=f"c-{colour}", **attributes)


def _y(value: float, ticks: Sequence[float]) -> float:
    low, high = ticks[0], ticks[-1]
    return _TOP + _PLOT_HEIGHT - (value - low) / (high - low) * _PLOT_HEIGHT


def _ticks(low: float, high: float, *, unit: float = 1) -> list[float]:
    """Two to six round values that hold the range between the first and the last: multiples of the `unit` in which labels are written,
    so that no label is rounded.
    """
    first, last = low / unit, high / unit
    if first == last:
        last += 1
    raw = max((last - first) / 3, 1)
    power = 10 ** math.floor(math.log10(raw))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= raw)
    return [step * place * unit for place in range(math.floor(first / step), math.ceil(last / step) + 1)]


def _n(value: float, digits: int = 1) -> str:
    """A coordinate, short."""
    return f"{value:.{digits}f}".rstrip("0").rstrip(".") or "0"
