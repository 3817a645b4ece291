"""The report's layout: labels and axes have room, and paper breaks where it should."""

import datetime as dt

from home import formatting
from report import charts
from tests.report.sample_accounts import FULL, TODAY, account, page


def test_labels_leave_room_for_the_value_and_axes_for_their_numbers() -> None:
    drawn = charts.draw_bars(
        "Opened",
        [charts.Bar("W" * 90, 50, "41.0 %"), charts.Bar("Spring menu", 40, "40.0 %")],
        axis=formatting.format_number,
    )
    assert f">{'W' * 23}…</text>" in drawn
    assert ">Spring menu<" in drawn
    few, many = (
        charts.draw_lines(
            "Contacts",
            [charts.Series("all", [(TODAY - dt.timedelta(days=1), size), (TODAY, size * 2)])],
            format_value=formatting.format_number,
        )
        for size in (10, 10_000_000)
    )
    assert 'x1="44"' in few
    assert 'x1="76"' in many


def test_paper_keeps_headings_with_what_they_head_and_ends_with_the_text() -> None:
    sheet = page(account("harbor", **FULL), account("pier")).split("@media print")[1]
    assert ".account+.account{break-before:page}" in sheet
    assert ".lead" in sheet.split("{break-after:avoid}")[0]
    assert ".sort{display:contents}" in sheet, "Chromium does not repeat buttons in headings"
