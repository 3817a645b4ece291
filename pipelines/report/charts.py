"""Charts as small SVG pictures with a title, units and a text alternative: from numbers to markup. Not here: which numbers (`page`).

They are drawn as wide as a phone, and as large as read there, so that two stand side by side on a screen.
"""

import datetime as dt
import math
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from pipelines.report.formatting import short_day

WIDTH = 374
_PLOT_HEIGHT = 150
_ROW = 36  # of one labelled bar
_TOP, _BOTTOM = 8, 22  # above the plot: half of the upper tick's label; below it: dates
_LEFT = 44  # for the ticks' labels, at least
_SPARK = (132, 26)  # below a figure
_LETTER, _CAPITAL, _WIDEST = 6.8, 9.0, 13.0  # of the font on most machines, rather too much

#: `Markup.format` escapes what it is given.
_FIGURE = Markup(
    '<figure class="{}">{}<svg class="{}"{} xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
    'width="{width}" height="{height}" '
    'role="img" aria-label="{label}"><title>{label}</title>{}</svg>{}</figure>'
)

Format = Callable[[float], str]


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
    title: str, items: Sequence[Bar], *, axis: Format, unit: float = 1, reference: tuple[float, str] | None = None, top: int = 0
) -> Markup:
    """Labelled horizontal bars on one scale from 0, with its axis below; its ticks are multiples of `unit`, or 0, 1 … `top`.

    `reference`: a value that they are compared with, and its name.
    """
    most = max([item.value or 0 for item in items] + [reference[0] if reference else 0])
    ticks = list(map(float, range(top + 1))) if top and most <= top else _ticks(0, most, unit=unit)
    rows = len(items) * _ROW
    mark = _place(reference[0], ticks[-1]) if reference else None
    shapes = [_bar(item, place * _ROW, ticks, mark) for place, item in enumerate(items)]
    for value in ticks:
        anchor = "end" if value == ticks[-1] else "middle" if value else "start"
        shapes.append(_text(axis(value), value / ticks[-1] * WIDTH, rows + 10, "axis", anchor))
    if reference and mark:
        shapes.append(_text(reference[1], mark, rows + 26, "axis", "end" if mark > WIDTH / 2 else "start"))
    label = "; ".join(f"{item.label}: {item.shown}" for item in items)
    return _figure(title, shapes, rows + (30 if reference else 14), f"{title}: {label}")


def _place(value: float, top: float) -> float:
    return min(max(value / top * WIDTH, 1), WIDTH - 1)


def _bar(item: Bar, y: float, ticks: Sequence[float], mark: float | None) -> Markup:
    places = [min(max(value / ticks[-1] * WIDTH, 0.5), WIDTH - 0.5) for value in ticks]
    shapes = [
        _text(_fitting(item.label, WIDTH - _width(item.shown) - 12), 0, y + 13, "ink"),
        _text(item.shown, WIDTH, y + 13, "ink", "end"),
        *(_line("rule", x, x, y + 19, y + 27) for x in places),
    ]
    if item.value:
        shapes.append(_box("accent", 0, y + 19, _place(item.value, ticks[-1]), 8, is_rounded=True))
    if mark:
        shapes.append(_box("ink", mark - 0.75, y + 19, 1.5, 11))
    return Markup().join(shapes)


def line(title: str, points: Sequence[tuple[dt.date, float]], *, shown: Format) -> Markup:
    """One value over time. The axis need not begin at 0: it shows change."""
    ticks = _ticks(min(value for _, value in points), max(value for _, value in points))
    left = _left(ticks, shown)
    first, last = points[0][0], points[-1][0]
    days = max((last - first).days, 1)
    places = [(_n(left + (on - first).days / days * (WIDTH - left - 5)), _n(_y(value, ticks))) for on, value in points]
    track = "M" + "L".join(f"{x} {y}" for x, y in places)
    path = Markup('<path class="s-accent" d="{}" fill="none" stroke-width="2" stroke-linejoin="round"/>').format(track)
    end = Markup('<circle class="c-accent" cx="{}" cy="{}" r="4"/>').format(*places[-1])
    label = f"from {shown(points[0][1])} on {short_day(first)} to {shown(points[-1][1])} on {short_day(last)}"
    note = f"{label[0].upper()}{label[1:]}."
    return _figure(
        title, [*_grid(ticks, shown), *_dates(first, last, left), path, end], _TOP + _PLOT_HEIGHT + _BOTTOM, f"{title}: {label}", note
    )


def sparkline(name: str, values: Sequence[float]) -> Markup:
    """A series without an axis, called by its name; nothing when it never changed."""
    low, high = min(values, default=0), max(values, default=0)
    if low == high:
        return Markup()
    step = (_SPARK[0] - 6) / (len(values) - 1)
    places = [(_n(3 + place * step), _n(3 + (high - value) / (high - low) * (_SPARK[1] - 6))) for place, value in enumerate(values)]
    track = "M" + "L".join(f"{x} {y}" for x, y in places)
    label = f"{name}: from {values[0]:g} to {values[-1]:g}"
    return Markup(
        '<svg class="spark" xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img" '
        'aria-label="{label}"><path class="s-accent" d="{track}" fill="none" stroke-width="1.5" stroke-linejoin="round"/>'
        '<circle class="c-accent" cx="{x}" cy="{y}" r="2.5"/></svg>'
    ).format(width=_SPARK[0], height=_SPARK[1], label=label, track=track, x=places[-1][0], y=places[-1][1])


def columns(title: str, items: Sequence[Column], *, names: tuple[str, str], unit: str) -> Markup:
    """What goes up above the axis, in the accent's colour; what goes down below it, in the second one."""
    ticks = _ticks(-max(item.down or 0 for item in items), max(item.up or 0 for item in items))
    left, zero = _left(ticks, _unsigned), _y(0, ticks)
    step = (WIDTH - left) / len(items)
    wide = max(step * 0.72, 1.5)
    shapes = _grid(ticks, _unsigned)
    for place, item in enumerate(items):
        x = left + place * step + (step - wide) / 2
        up, down = _y(item.up or 0, ticks), _y(-(item.down or 0), ticks)
        shapes += [_box("accent", x, up, wide, zero - up)] if item.up else []
        shapes += [_box("second", x, zero, wide, down - zero)] if item.down else []
    shapes += [_line("axis", left, WIDTH, zero, zero), *_dates(items[0].on, items[-1].on, left)]
    up_total = _total(names[0], [(item.on, item.up) for item in items])
    down_total = _total(names[1], [(item.on, item.down) for item in items])
    since = f"{unit} from {short_day(items[0].on)} on"
    note = Markup("{}{}, {}{}; {}.").format(swatch("accent"), up_total.capitalize(), swatch("second"), down_total, since)
    return _figure(title, shapes, _TOP + _PLOT_HEIGHT + _BOTTOM, f"{title}: {up_total}, {down_total}; {since}", note)


def _total(name: str, values: Sequence[tuple[dt.date, float | None]]) -> str:
    """E.g. `left 12`, `left 12 since 3 Mar` where it is not known before."""
    known = [(on, value) for on, value in values if value is not None]
    if not known:
        return f"{name} not known"
    since = f" since {short_day(known[0][0])}" if known[0][0] != values[0][0] else ""
    return f"{name} {sum(value for _, value in known):,.0f}{since}"


def stack(title: str, parts: Sequence[tuple[str, float]], *, unit: str) -> Markup:
    """Parts of a whole in one bar over the whole width, from the strongest colour to the faintest; `swatch` says which is which."""
    whole = sum(value for _, value in parts) or 1
    shapes: list[Markup] = []
    x = 0.0
    for place, (_, value) in enumerate(parts):
        width = value / whole * 2 * WIDTH
        shapes.append(_box("accent", x, 0, max(width - 2, 0), 24, opacity=strength(place, len(parts))))
        x += width
    label = "; ".join(f"{name}: {value:,.0f} {unit}, {100 * value / whole:.1f} %" for name, value in parts)
    return _figure("", shapes, 24, f"{title}: {label}")


def swatch(colour: str, opacity: float = 1) -> Markup:
    """A colour of a chart, to stand before the name of what it means."""
    picture = Markup('<svg xmlns="http://www.w3.org/2000/svg" width="10" height="10" aria-hidden="true" class="swatch">{}</svg>')
    return picture.format(_box(colour, 0, 0, 10, 10, is_rounded=True, opacity=opacity))


def strength(place: int, count: int) -> float:
    """The opacity of a part of a `stack`."""
    return round(1 - 0.7 * place / max(count - 1, 1), 2)


def _figure(title: str, shapes: Iterable[Markup], height: float, label: str, note: str = "") -> Markup:
    """The picture with its title above and its note below; `label` is what it shows, for who cannot see it. Without title it is wide."""
    return _FIGURE.format(
        "chart" if title else "wide-chart",
        Markup('<figcaption class="chart-title">{}</figcaption>').format(title) if title else "",
        "picture" if title else "picture band",
        "" if title else Markup(' preserveAspectRatio="none"'),
        Markup().join(shapes),
        Markup('<p class="chart-note">{}</p>').format(note) if note else "",
        width=WIDTH if title else 2 * WIDTH,
        height=_n(height),
        label=label,
    )


def _unsigned(value: float) -> str:
    return f"{abs(value):,.0f}"


def _left(ticks: Sequence[float], shown: Format) -> float:
    """Where the plot begins: behind the longest label."""
    return max(_LEFT, 8 + max(_width(shown(value)) for value in ticks))


def _grid(ticks: Sequence[float], shown: Format) -> list[Markup]:
    left = _left(ticks, shown)
    rules = [_line("rule", left, WIDTH, y, y) for y in (_y(value, ticks) for value in ticks)]
    return [*rules, *(_text(shown(value), left - 8, _y(value, ticks) + 4, "axis", "end") for value in ticks)]


def _dates(first: dt.date, last: dt.date, left: float) -> list[Markup]:
    y = _TOP + _PLOT_HEIGHT + 16
    return [_text(short_day(first), left, y, "axis"), *([_text(short_day(last), WIDTH, y, "axis", "end")] if last != first else [])]


def _text(words: str, x: float, y: float, colour: str, anchor: str = "start") -> Markup:
    anchored = Markup(' text-anchor="{}"').format(anchor) if anchor != "start" else ""
    return Markup('<text class="c-{}"{} x="{}" y="{}">{}</text>').format(colour, anchored, _n(x), _n(y), words)


def _box(colour: str, x: float, y: float, width: float, height: float, *, is_rounded: bool = False, opacity: float = 1) -> Markup:
    rounded = Markup(' rx="2"') if is_rounded else ""
    faint = Markup(' opacity="{}"').format(_n(opacity, 2)) if opacity < 1 else ""
    place = map(_n, (x, y, width, height))
    return Markup('<rect class="c-{}"{}{} x="{}" y="{}" width="{}" height="{}"/>').format(colour, rounded, faint, *place)


def _line(colour: str, x1: float, x2: float, y1: float, y2: float) -> Markup:
    return Markup('<line class="s-{}" x1="{}" x2="{}" y1="{}" y2="{}"/>').format(colour, *map(_n, (x1, x2, y1, y2)))


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
