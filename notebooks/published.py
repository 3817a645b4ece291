"""Finds, opens, queries and draws the published file for the notebooks. They only read that file.

Colours, number formats and the sentences about an account are the report's.
"""

from __future__ import annotations

import datetime as dt
import html
import os
import re
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import altair as alt
import duckdb
import marimo as mo
import pandas as pd

from home import formatting
from marketing_api.clock import utc_now
from marketing_api.redaction import plain
from report.figures import TIERS as TIERS
from report.figures import TIERS_NOTE as TIERS_NOTE
from report.figures import write_headline
from report.queries import find_zone, read_accounts
from warehouse.duckdb_errors import explain_query_error, is_out_of_memory
from warehouse.publish import Published, read_facts
from warehouse.sealed_query import SEAL, limit_memory
from warehouse.sql import fetch_value, not_one_select, quote_text

# Of `df()` in DuckDB 2.0 with pandas 3.1.
warnings.filterwarnings("ignore", "The inplace keyword in DataFrame.drop is deprecated")

_PROJECT = Path(__file__).parent.parent
_LOOKS = (_PROJECT / "report" / "templates" / "looks.css").read_text()
#: The colours for light pages: their contrast with a dark page is also at least 3:1.
ACCENT, SECOND = (re.findall(rf"--{name}:(#\w+)", _LOOKS)[0] for name in ("accent", "second"))
#: Hours after which the newest response is too old: a night, and six hours of grace.
FRESH_HOURS = 30
#: Limits of a user's query: its time, the rows that are displayed, and the memory of the process.
QUERY_SECONDS, ROW_LIMIT, _QUERY_BYTES = 30, 1_000, 3_000_000_000
_MEMORY = "1GB"
#: Nothing is spilled to disk. They are set after the file is open: DuckDB refuses to open it again in this
#: process with another configuration.
_LIMITS = (
    f"set global memory_limit = '{_MEMORY}'",
    "set global temp_directory = ''",
    "set global autoinstall_known_extensions = false",
)


def path() -> Path:
    """In `MARKETING_HOME`, else in the live home of this folder, else in the sandbox's. Raises
    FileNotFoundError that says what to run."""
    homes = (
        [Path(os.environ["MARKETING_HOME"])]
        if os.environ.get("MARKETING_HOME")
        else [_PROJECT / "data" / "live", _PROJECT / "data" / "sandbox"]
    )
    for home in homes:
        if (found := home / "published" / "marketing.duckdb").exists():
            return found
    raise FileNotFoundError(
        f"nothing is published in {' or '.join(map(str, homes))} yet: run `make sync`, or set MARKETING_HOME"
    )


def connect() -> duckdb.DuckDBPyConnection:
    """The published file, read-only and sealed: queries reach no other file and no network.

    It is never locked: the next sync replaces the file. Run the cell again to see the new one.
    """
    try:
        found = path()
    except FileNotFoundError as problem:  # displayed in the page, since an app would be blank
        mo.stop(
            mo.running_in_notebook(),
            mo.callout(
                mo.md(f"There is no data yet: {problem}. Then load this page again."), kind="warn"
            ),
        )
        raise
    con = duckdb.connect(str(found), read_only=True)
    if not fetch_value(
        con, "select current_setting('lock_configuration')"
    ):  # otherwise another page of this process has sealed it
        for setting in (*_LIMITS, *SEAL):
            con.execute(setting)
    return con


def facts(con: duckdb.DuckDBPyConnection) -> Published:
    """When it was published, how new its data is, and how personal data is masked."""
    return read_facts(con)


def accounts(con: duckdb.DuckDBPyConnection) -> list[str]:
    """The accounts in the file."""
    found = con.execute("select distinct account from sync.coverage order by account").fetchall()
    return [account for (account,) in found]


def account_choice(con: duckdb.DuckDBPyConnection) -> mo.ui.dropdown:
    """A dropdown of the accounts, with the first one selected."""
    names = accounts(con)
    return mo.ui.dropdown(names, value=names[0] if names else None, label="Account")


def day_of(con: duckdb.DuckDBPyConnection, account: str | None, moment: str) -> str:
    """SQL: the day of a time, in the account's time zone as in the report."""
    return f"timezone({quote_text(find_zone(con, account))}, {moment})::date"


def period_choice(
    con: duckdb.DuckDBPyConnection,
    sql: str,
    account: str | None,
    label: str,
    *,
    days: int | None = None,
) -> mo.ui.date_range | None:
    """A choice of two days between the first and last day of `sql` (for one account). The last `days` are
    selected at first. None if there are no days."""
    first, last = con.execute(sql, [account]).fetchone() or (None, None)
    if first is None:
        return None
    since = max(first, last - dt.timedelta(days=days - 1)) if days else first
    return mo.ui.date_range(start=first, stop=last, value=(since, last), label=label)


def period(choice: mo.ui.date_range | None) -> tuple[dt.date, dt.date]:
    """The chosen days, in any order; today if there was no choice."""
    first, last = sorted(
        choice.value if choice is not None and choice.value else (utc_now().date(),) * 2
    )
    return first, last


def news(con: duckdb.DuckDBPyConnection) -> list[str]:
    """The first sentence of the report about every account."""
    found = read_accounts(con, facts(con), utc_now()).accounts
    return [
        f"{account.title}: {sentence}" if len(found) > 1 else sentence
        for account in found
        for sentence in write_headline(account)
    ]


# -- words and numbers

#: How to read what several notebooks show.
DASH = "A dash means unknown."
MACHINE_OPENS = (
    "Some programs, such as Apple Mail, open messages automatically, so clicks are more reliable "
    "than openings."
)

share, rating, points, change, plural = (
    formatting.format_share,
    formatting.format_rating,
    formatting.format_points,
    formatting.change_of,
    formatting.count_of,
)


def known(number: Any) -> float | None:
    """The value, or None for a missing value of pandas."""
    return None if pd.isna(number) else number


def number(value: float | None) -> str:
    """As a whole number; a fraction has one decimal, or three if it is small."""
    if (value := known(value)) is None:
        return formatting.UNKNOWN
    return (
        f"{value:,.0f}"
        if float(value).is_integer()
        else f"{value:.3g}"
        if abs(value) < 1
        else f"{value:,.1f}"
    )


def _unquoted(form: Callable[[float | None], str]) -> Callable[[Any], str]:
    return lambda value: form(known(value))


def sentences(found: Iterable[str]) -> mo.Html | None:
    """Findings in words, in a size that matches their importance."""
    items = "".join(f"<li>{_escaped(one)}</li>" for one in found)
    return mo.Html(f"<ul class='findings'>{items}</ul>") if items else None


def heading(finding: str, how_to_read: str = "") -> mo.Html:
    """The finding of a section in a sentence, with a note below on how to read the section."""
    below = f"<p class='note'>{_escaped(how_to_read)}</p>" if how_to_read else ""
    return mo.Html(f"<h2 class='finding'>{_escaped(finding)}</h2>{below}")


def note(text: str) -> mo.Html:
    """How to read the content above."""
    return mo.Html(f"<p class='note'>{_escaped(text)}</p>")


def _escaped(text: str) -> str:
    """As text, with a share on one line with its sign."""
    return html.escape(plain(text)).replace(" %", "\u00a0%")


def times(value: float | None) -> str:
    """A ratio: 1.2 → `1.2 ×`."""
    return formatting.UNKNOWN if value is None else f"{value:.1f} ×"


def spelled(frame: pd.DataFrame) -> pd.DataFrame:
    """The table with headings in words: `request_count` → `Request count`."""
    return frame.rename(columns=lambda name: str(name).replace("_", " ").capitalize())


#: marimo's tables load pictures whose addresses are in texts, which shows their server who reads them, and when.
_PICTURE = re.compile(
    r"(?:^data:|https?:)(?=image/|//[^\s\"<>`{}|\\^]*(?:\.(?:png|jpe?g|gif|webp|svg|ico|avif)|githubusercontent))",
    re.IGNORECASE,
)


def shown(value: object) -> str:
    """A text, a date or an id; a dash for an unknown value. An invisible joiner prevents the picture of an
    address from being loaded."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    unknown = (
        value is None
        or value is pd.NaT
        or value is pd.NA
        or (isinstance(value, float) and value != value)
    )
    return formatting.UNKNOWN if unknown else _PICTURE.sub("\\g<0>\u2060", str(value))


def table(
    frame: pd.DataFrame,
    forms: Mapping[str, Callable[[Any], str]] | None = None,
    *,
    wide: Mapping[str, int] | None = None,
    **more: Any,
) -> mo.ui.table | mo.Html:
    """A table with all rows on one page; with `selection`, its rows can be selected.

    `forms`: column → the format of its values. `wide`: columns of long texts, with their width.
    """
    if frame.empty:
        return mo.md("*None.*")
    options: dict[str, Any] = {
        "selection": None,
        "page_size": min(len(frame), 100),
        "pagination": len(frame) > 100,
        "show_column_summaries": False,
        "show_data_types": False,
        "show_search": len(frame) > 12,
    }
    options |= {"max_height": 460} if len(frame) > 12 else {}
    options |= {"wrapped_columns": list(wide), "column_widths": dict(wide)} if wide else {}
    known_forms = {name: _form(frame[name]) for name in frame.columns}
    known_forms |= {
        name: _unquoted(form) for name, form in (forms or {}).items() if name in frame.columns
    }
    return mo.ui.table(frame, format_mapping=known_forms, **(options | more))


def _form(column: pd.Series[Any]) -> Callable[[Any], str]:
    if (
        pd.api.types.is_datetime64_any_dtype(column)
        and (column.dropna() == column.dropna().dt.normalize()).all()
    ):
        return lambda moment: shown(moment if pd.isna(moment) else pd.Timestamp(moment).date())
    is_number = pd.api.types.is_numeric_dtype(column) and not pd.api.types.is_bool_dtype(column)
    return number if is_number and not str(column.name).endswith("_id") else shown


# -- charts


def lines(
    frame: pd.DataFrame,
    x: str,
    y: str,
    title: str,
    unit: str,
    *,
    color: str | None = None,
    form: str = ",.0f",
    domain: tuple[float, float] | None = None,
) -> mo.Html:
    """A line for each value of `color` over time, with a gap if a day (or week, or month) is missing or
    unknown."""
    # Fixed names: a query may have any, and Vega reads a dot or a bracket as a path.
    plainly = pd.DataFrame(
        {"x": pd.to_datetime(frame[x]), "y": frame[y], "what": frame[color] if color else title}
    )
    days = plainly.dropna(subset=["y"])["x"]
    if days.nunique() < 2:
        so_far = (
            f"known for one day so far, {formatting.format_day(days.iloc[0])}"
            if len(days)
            else "nothing yet"
        )
        return mo.md(f"*{title}: {so_far}.*")
    whole = _with_gaps(plainly)
    size = (
        36 if days.nunique() < 60 else 7
    )  # a day between two gaps has no line, but a visible point
    names = list(dict.fromkeys(plainly["what"]))
    base = alt.Chart(whole).encode(
        x=alt.X(
            "x:T",
            title=None,
            axis=alt.Axis(format=_dates(days), labelOverlap=True, tickCount=6, grid=False),
        ),
        y=alt.Y(
            "y:Q",
            title=None,
            axis=_axis(form),
            scale=alt.Scale(zero=False, domain=domain or alt.Undefined),
        ),
        color=alt.Color(
            "what:N",
            scale=alt.Scale(domain=names, range=[ACCENT, SECOND][: len(names)]),
            legend=alt.Legend(
                orient="top",
                direction="vertical",
                columns=1,
                labelLimit=0,
                labelFontSize=12,
                title=None,
            )
            if color
            else None,
        ),
        tooltip=[
            alt.Tooltip("x:T", format="%-d %b %Y", title="day"),
            alt.Tooltip("what:N"),
            alt.Tooltip("y:Q", format=form, title=unit),
        ],
    )
    drawn = base.mark_line(
        invalid="break-paths-show-path-domains", strokeWidth=2
    ) + base.mark_point(filled=True, opacity=1, size=size)
    return _figure(title, unit, drawn.properties(width="container", height=220))


def _with_gaps(frame: pd.DataFrame) -> pd.DataFrame:
    """A row for every step of time, including steps without data."""
    every = pd.date_range(frame["x"].min(), frame["x"].max(), freq=_step(frame["x"]))
    parts = []
    for name, part in frame.groupby("what", sort=False):
        known_days = part.drop_duplicates("x").set_index("x")
        parts.append(
            known_days.reindex(known_days.index.union(every))
            .rename_axis("x")
            .reset_index()
            .assign(what=name)
        )
    return pd.concat(parts)


def _step(moments: pd.Series[Any]) -> Any:
    """The usual distance between neighbours: in months if it is that long, else in days."""
    days = [
        (later - earlier).days for earlier, later in pairwise(sorted(moments.dropna().unique()))
    ]
    least = max(min(days, default=1), 1)
    return (
        "MS"
        if 28 <= least <= 31 and all(each.day == 1 for each in moments)
        else pd.Timedelta(days=least)
    )


def _dates(moments: pd.Series[Any]) -> str:
    return "%b %Y" if (moments.max() - moments.min()).days > 400 else "%-d %b"


def _axis(form: str) -> alt.Axis:
    return alt.Axis(format=form, tickCount=5, domain=False, ticks=False, gridOpacity=0.5)


def bars(
    frame: pd.DataFrame, label: str, value: str, title: str, unit: str, *, form: str = ",.0f"
) -> mo.Html:
    """A bar for each row, in their order, with its value beside it. Rows with the same label have separate bars."""
    if frame.empty:
        return mo.md(f"*{title}: nothing yet.*")
    names = [shown(each) for each in frame[label]]
    drawn = pd.DataFrame(
        {"y": [name + names[:place].count(name) * "\u200b" for place, name in enumerate(names)]}
    )
    drawn["x"] = frame[value].astype(float).to_numpy()
    percent = form.endswith("%")
    drawn["words"] = [
        formatting.UNKNOWN if pd.isna(x) else share(x) if percent else format(x, form)
        for x in drawn["x"]
    ]
    base = alt.Chart(drawn).encode(
        x=alt.X("x:Q", title=None, axis=None, scale=alt.Scale(zero=True)),
        y=alt.Y(
            "y:N",
            title=None,
            sort=None,
            axis=alt.Axis(labelLimit=150, domain=False, ticks=False, labelPadding=6),
        ),
        tooltip=[alt.Tooltip("y:N", title="what"), alt.Tooltip("words:N", title=unit)],
    )
    words = base.mark_text(align="left", dx=5, color="gray").encode(text="words:N")
    shapes = base.mark_bar(color=ACCENT, cornerRadiusEnd=2, size=14) + words
    return _figure(title, unit, shapes.properties(width="container", height=alt.Step(24)))


def _figure(title: str, unit: str, chart: Any) -> mo.Html:
    """A chart with its title as text, which wraps on a narrow page."""
    looks = chart.configure(
        font="system-ui, sans-serif",
        background="transparent",
        view=alt.ViewConfig(stroke="transparent"),
    )
    words = f"<p class='chart-title'>{html.escape(title)} <span class='unit'>{html.escape(unit)}</span></p>"
    return mo.vstack([mo.Html(words), looks], gap=0)


# -- questions in SQL


def tables(con: duckdb.DuckDBPyConnection) -> pd.DataFrame:
    """Every table with its size and description. Marts come first, since they have the answers."""
    return con.sql("""
        select schema_name || '.' || table_name as "Table", estimated_size as "Rows", split_part(comment, '. ', 1) as "Description"
        from (
            select schema_name, table_name, estimated_size, comment from duckdb_tables()
            union all select schema_name, view_name, null, comment from duckdb_views()
        )
        where schema_name in ('marts', 'custom', 'source', 'history', 'sync')
        order by array_position(['marts', 'custom', 'source', 'history', 'sync'], schema_name), table_name
    """).df()


def examples() -> dict[str, str]:
    """Question → query, as in docs/marts.md."""
    text = (_PROJECT / "docs" / "marts.md").read_text(encoding="utf-8")
    return dict(
        re.findall(r"^([A-Z][^\n]*\?)\n\n```sql\n(.*?)\n```", text, re.MULTILINE | re.DOTALL)
    )


@contextmanager
def time_limit(
    connection: duckdb.DuckDBPyConnection, seconds: float
) -> Iterator[Callable[[], bool]]:
    """Interrupt the connection's query after that many seconds. Yields a function that returns whether the
    time is over."""
    timer, ends = threading.Timer(seconds, connection.interrupt), time.monotonic() + seconds
    timer.start()
    try:
        yield lambda: time.monotonic() >= ends
    finally:
        timer.cancel()
        timer.join()


def ask(
    con: duckdb.DuckDBPyConnection, sql: str, seconds: float = QUERY_SECONDS
) -> pd.DataFrame | str:
    """The first rows of one SELECT (one more than is displayed), or a sentence that says why there are none."""
    own = con.cursor()  # the time limit only interrupts this query
    with limit_memory(_QUERY_BYTES), time_limit(own, seconds) as is_over:
        try:
            if reason := not_one_select(own, sql):
                return f"The query {reason}."
            own.execute(sql)
            parts = [own.fetch_df_chunk()]
            while len(parts[-1]) and sum(map(len, parts)) <= ROW_LIMIT:
                parts.append(own.fetch_df_chunk())
            return pd.concat([part for part in parts if len(part)] or parts, ignore_index=True)
        except (duckdb.Error, MemoryError) as problem:
            if is_over():
                return f"The query takes longer than {seconds:g} seconds: simplify it."
            if is_out_of_memory(problem):
                return f"The query takes more than {_MEMORY} of memory: simplify it."
            return f"The query cannot be run: {plain(explain_query_error(problem, may_quote=True))}"
        finally:
            own.close()


def forms(frame: pd.DataFrame) -> dict[str, Callable[[Any], str]]:
    """The formats of the marts' rates and of their differences."""
    numeric = map(str, frame.select_dtypes("number").columns)
    return {
        name: share if name.endswith("_rate") else points
        for name in numeric
        if name.endswith(("_rate", "_rate_over_median"))
    }


def measures(frame: pd.DataFrame) -> list[str]:
    """The columns that a chart can display."""
    numeric = frame.select_dtypes("number").columns
    return [name for name in numeric if not str(name).endswith("_id") and frame[name].notna().any()]


def picture(frame: pd.DataFrame, measure: str) -> mo.Html | None:
    """The measure over the first column of dates without repetition, else by the first column of words; None
    if it has neither."""
    moments = [
        name for name in frame.columns if _is_date(frame[name]) and frame[name].nunique() > 1
    ]
    words = [
        name
        for name in frame.columns
        if not _is_date(frame[name]) and frame[name].dtype.kind not in "biufcmM"
    ]
    form = (
        ".1%"
        if str(measure).endswith("_rate")
        else ",.1f"
        if (frame[measure].dropna() % 1).any()
        else ",.0f"
    )
    if moments and frame[moments[0]].is_unique:
        return lines(frame, moments[0], measure, measure, f"by {moments[0]}", form=form)
    if not words:
        return None
    first = frame.head(20)
    label = next((name for name in words if first[name].map(str).nunique() > 1), words[0])
    rest = (
        f"the first {len(first)} of {len(frame)} rows"
        if len(frame) > len(first)
        else "in the order of the query"
    )
    return bars(first, label, measure, measure, f"by {label}, {rest}", form=form)


def extremes(frame: pd.DataFrame, measure: str) -> str:
    """The range of a column's values, as a sentence."""
    values = frame[measure].dropna()
    write = share if str(measure).endswith("_rate") else number
    return (
        f"{measure} is between {write(values.min())} and {write(values.max())}"
        if len(values) > 1
        else ""
    )


def _is_date(column: pd.Series[Any]) -> bool:
    known_values = column.dropna()
    return len(known_values) > 0 and (
        pd.api.types.is_datetime64_any_dtype(column)
        or all(isinstance(each, dt.date) for each in known_values)
    )
