"""Where the published file is, and how the notebooks open it and draw. They read that file and nothing else."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import altair as alt
import duckdb
import marimo as mo
import pandas as pd

ACCENT = "#2f6f6a"
SECOND = "#c2703d"
#: Hours after which the newest answer is too old: a night, and six hours of grace.
FRESH_HOURS = 30
_PROJECT = Path(__file__).parent.parent


def path() -> Path:
    """`MARKETING_HOME`, else the live home of this folder, else the sandbox's. FileNotFoundError says what to run."""
    homes = (
        [Path(os.environ["MARKETING_HOME"])]
        if os.environ.get("MARKETING_HOME")
        else [_PROJECT / "data" / "live", _PROJECT / "data" / "sandbox"]
    )
    for home in homes:
        if (found := home / "published" / "marketing.duckdb").exists():
            return found
    raise FileNotFoundError(f"nothing is published in {' or '.join(map(str, homes))} yet: run `make sync`, or set MARKETING_HOME")


def connect() -> duckdb.DuckDBPyConnection:
    """The published file, read-only. It is never locked: the next sync puts a new file in its place, run again to see it."""
    try:
        found = path()
    except FileNotFoundError as problem:  # shown in the page: as an app it would be blank
        mo.stop(mo.running_in_notebook(), mo.callout(mo.md(f"There is no data yet: {problem}. Then load this page again."), kind="warn"))
        raise
    return duckdb.connect(str(found), read_only=True)


def accounts(con: duckdb.DuckDBPyConnection) -> list[str]:
    """The accounts there are."""
    return [row[0] for row in con.execute("select account from source.business order by account").fetchall()]


def account_choice(con: duckdb.DuckDBPyConnection) -> mo.ui.dropdown:
    """A dropdown of the accounts, the first one chosen."""
    names = accounts(con)
    return mo.ui.dropdown(names, value=names[0] if names else None, label="Account")


def percent(value: float) -> str:
    return "–" if pd.isna(value) else f"{value:.1%}"


def points(value: float) -> str:
    """A difference of two rates."""
    return "–" if pd.isna(value) else f"{100 * value:+.1f} points"


def decimal(value: float) -> str:
    return "–" if pd.isna(value) else f"{value:.1f}"


#: marimo's tables load the pictures that texts name, which tells a stranger who reads them, and when.
_PICTURE = re.compile(
    r"(?:^data:|https?:)(?=image/|//[^\s\"<>`{}|\\^]*(?:\.(?:png|jpe?g|gif|webp|svg|ico|avif)|githubusercontent))", re.IGNORECASE
)


def shown(value: object) -> str:
    """A text, a date or an id; a dash for what is not known. An unseen joiner keeps the picture of an address from being loaded."""
    unknown = value is None or value is pd.NaT or (isinstance(value, float) and value != value)
    return "–" if unknown else _PICTURE.sub("\\g<0>\u2060", str(value))


def table(frame: pd.DataFrame, forms: Mapping[str, Callable[[float], str]] | None = None, **more: Any) -> mo.ui.table:
    """A table to look at (and to choose from with `selection`); `forms`: column → how a value is written."""
    options: dict[str, Any] = {"selection": None, "page_size": 10, "show_column_summaries": False, "show_data_types": False}
    plain = {name: shown for name in frame.columns if not pd.api.types.is_numeric_dtype(frame[name]) or str(name).endswith("_id")}
    known = {name: form for name, form in (plain | dict(forms or {})).items() if name in frame.columns}
    return mo.ui.table(frame, format_mapping=known, **(options | more))


def lines(frame: pd.DataFrame, x: str, y: str, title: str, *, color: str | None = None, form: str = ".0f") -> alt.Chart | mo.Html:
    """A line per value of `color` over time; a sentence when there is nothing to draw."""
    if frame.empty:
        return mo.md(f"*{title}: nothing yet.*")
    chart = alt.Chart(frame, title=title).mark_line(interpolate="monotone", color=ACCENT, point=len(frame) < 30)
    encoded = chart.encode(
        x=alt.X(x, type="temporal", title=None),
        y=alt.Y(y, type="quantitative", title=None, axis=alt.Axis(format=form), scale=alt.Scale(zero=False)),
        tooltip=list(frame.columns),
    )
    if color:
        encoded = encoded.encode(color=alt.Color(color, type="nominal", title=None, scale=alt.Scale(range=[ACCENT, SECOND])))
    return encoded.properties(width="container", height=220)


def bars(frame: pd.DataFrame, label: str, value: str, title: str, *, form: str = ",.0f") -> alt.Chart | mo.Html:
    """A bar per row, the longest first; a sentence when there is nothing to draw."""
    if frame.empty:
        return mo.md(f"*{title}: nothing yet.*")
    chart = alt.Chart(frame, title=title).mark_bar(color=ACCENT, cornerRadiusEnd=2)
    return chart.encode(
        x=alt.X(value, type="quantitative", title=None, axis=alt.Axis(format=form, tickCount=6)),
        y=alt.Y(label, type="nominal", title=None, sort="-x", axis=alt.Axis(labelLimit=260)),
        tooltip=list(frame.columns),
    ).properties(width="container", height=alt.Step(22))
